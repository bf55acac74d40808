"""What to do about a slow cell: at most two next steps, each by a rule on the ranks' profiles."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

from ...common.rank_specs import name_ranks
from ...common.units import format_bytes, format_percent, format_seconds
from .lateness import Profiles, Waiting, waiting
from .time_account import Account, accounts, average

_MOST = 2
_FELT = 0.1
"""The part of a step from which a loss is worth a change."""
_PAUSES = 0.05
_MANY = 20
"""Collectives of a step, above which they are better joined."""
_TINY = 64 * 1024
"""Bytes of a collective whose time hardly depends on them."""
_SHORT = {False: 100e-6, True: 20e-6}
"""Seconds of an operation on the CPU, or a kernel on the GPU, that takes as long to start."""
_OPERATIONS = 100
_OVERLAPPED = 0.5
_WORKERS = 4


class _Case(NamedTuple):
    profiles: Profiles
    by_rank: dict[int, Account]
    mean: Account
    waits: Waiting
    step: str


class _Step(NamedTuple):
    share: float
    """The part of a step that it may save; 1 for what ends a program."""
    text: str


def next_steps(profiles: Profiles) -> list[str]:
    """Return at most two sentences on what to change, the one that may save most first."""
    waits = waiting(profiles)
    by_rank = accounts(profiles, waits)
    is_loop = any(profile.steps for profile in profiles.values())
    step = "a step" if is_loop else "the cell"
    case = _Case(profiles, by_rank, average(by_rank), waits, step)
    found = [one for rule in _RULES if (one := rule(case))]
    found.sort(key=lambda one: one.share, reverse=True)
    return [f"Next: {one.text}" for one in found[:_MOST]]


def _input(case: _Case) -> _Step | None:
    shares = {rank: account.part(account.input) for rank, account in case.by_rank.items()}
    rank = max(shares, key=lambda one: shares[one])
    facts = case.profiles[rank].facts
    if shares[rank] < _FELT or facts.workers is None:
        return None
    waits = f"rank {rank} waits {format_percent(shares[rank])} of {case.step} for data"
    if facts.workers < (most := min(_WORKERS, facts.cores)):
        text = f"num_workers is {facts.workers}, and {waits}: use num_workers={most}."
    elif not facts.workers:
        text = f"{waits}, which it loads itself, on its only core: load less, or once and keep it."
    else:
        text = f"{waits} with num_workers={facts.workers}: store data that is prepared already."
    return _Step(shares[rank], text)


def _late(case: _Case) -> _Step | None:
    late, share = case.waits.late, case.mean.part(case.mean.waiting)
    if late is None or share < _FELT:
        return None
    who, more = name_ranks(late.ranks), format_seconds(late.seconds)
    if late.cause is None or late.cause.on == "input":  # the rule on input says what to do
        return None
    if late.cause.on == "gpu":
        return _Step(
            share,
            f"kernels take {more} longer on {who}: look at its GPU's clocks and other processes in "
            "the panel, or give it less work.",
        )
    name = f"`{late.cause.name}`" if late.cause.on == "annotation" else late.cause.name
    return _Step(share, f"{name} takes {more} longer on {who}: give all ranks the same work there.")


def _small_operations(case: _Case) -> _Step | None:
    facts = [profile.facts for profile in case.profiles.values()]
    on_gpu = any(one.on_gpu for one in facts)
    count = fmean(
        profile.facts.operations / max(1, profile.steps) for profile in case.profiles.values()
    )
    share = case.mean.part(case.mean.other)
    if count < _OPERATIONS or share < _FELT or case.mean.compute / count > _SHORT[on_gpu]:
        return None
    what = "kernels" if on_gpu else "operations"
    each = format_seconds(case.mean.compute / count)
    how = ' torch.compile(mode="reduce-overhead")' if on_gpu else " torch.compile"
    runs = f"{case.step} runs {count:,.0f} {what} of {each}, and starting them takes longer"
    return _Step(share, f"{runs}: use larger batches, or{how}.")


def _overlap(case: _Case) -> _Step | None:
    share = case.mean.part(case.mean.communication)
    tiny = _tiny_collectives(case)
    if share < 2 * _FELT or case.mean.overlap >= _OVERLAPPED or tiny:
        return None
    part = (
        f"{format_percent(share)} of {case.step} is communication during which nothing is computed"
    )
    if any(profile.facts.has_ddp for profile in case.profiles.values()):
        how = "accumulate gradients over several batches (`no_sync`), or use larger batches"
    else:
        how = (
            "wrap the model in DistributedDataParallel, or begin with async_op=True and wait later"
        )
    return _Step(share, f"{part}: {how}.")


def _tiny_collectives(case: _Case) -> _Step | None:
    facts = next(iter(case.profiles.values())).facts
    steps = max(1, next(iter(case.profiles.values())).steps)
    count = facts.collectives / steps
    share = case.mean.part(case.mean.communication)
    if count < _MANY or facts.bytes > _TINY or share < _FELT:
        return None
    size = format_bytes(round(facts.bytes))
    runs = f"{case.step} runs {count:,.0f} collectives of {size}"
    return _Step(share, f"{runs}: join them, such as by torch.cat and one all_reduce.")


def _copies(case: _Case) -> _Step | None:
    share = case.mean.part(case.mean.copies)
    if share < _FELT:
        return None
    return _Step(
        share,
        f"{format_percent(share)} of {case.step} is copying between the CPU and the GPU: use "
        "pin_memory=True and non_blocking=True, and read values (`.item()`) only now and then.",
    )


def _pauses(case: _Case) -> _Step | None:
    share = fmean(
        case.by_rank[rank].part(profile.facts.pauses / max(1, profile.steps))
        for rank, profile in case.profiles.items()
    )
    if share < _PAUSES:
        return None
    return _Step(
        share,
        f"Python collects garbage for {format_percent(share)} of {case.step}: call gc.freeze() "
        "before the loop, or gc.disable(), and gc.collect() now and then.",
    )


def _growth(case: _Case) -> _Step | None:
    rank, profile = max(case.profiles.items(), key=lambda one: one[1].facts.growth)
    facts = profile.facts
    if not facts.growth:
        return None
    size = format_bytes(round(facts.growth))
    if facts.grows:
        name, _, where = facts.grows.partition(", ")
        at = f" ({where})" if where else ""
        cause = f"`{name}`{at} gets longer: keep `.item()` or `.detach()` of what you append"
    else:
        cause = "find what keeps it with %dist_memory"
    return _Step(1.0, f"memory of rank {rank} grows by {size} each step; {cause}.")


def _compiles(case: _Case) -> _Step | None:
    count = max(profile.facts.compiles for profile in case.profiles.values())
    is_loop = any(profile.steps for profile in case.profiles.values())
    if not count or not is_loop:
        return None
    times = "once" if count == 1 else f"{count} times"
    # While one rank compiles, the others wait for it: that time is saved too.
    return _Step(
        max(_FELT, *(case.mean.part(lost) for lost in (case.mean.other, case.mean.waiting))),
        f"torch.compile compiled {times} in these steps: use dynamic=True, or inputs of one "
        "shape; TORCH_LOGS=recompiles says why.",
    )


_RULES: tuple[Callable[[_Case], _Step | None], ...] = (
    _growth,
    _input,
    _compiles,
    _late,
    _copies,
    _tiny_collectives,
    _overlap,
    _pauses,
    _small_operations,
)
