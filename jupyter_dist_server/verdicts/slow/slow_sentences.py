"""The profile of a cell in words: one sentence on why it is slow, and a table."""

from __future__ import annotations

from ...common.protocol.ranks.profile_messages import Spent
from ...common.rank_specs import name_ranks
from ...common.units import format_bytes, format_percent, format_seconds
from .lateness import Late, Profiles, waiting
from .time_account import Account, accounts, average

_LARGE = 0.1
"""The part of a step from which waiting for other ranks is a loss."""
_INPUT_BOUND = 0.3
_OTHER = 0.5
_COMMUNICATION = 0.2
_MOST = 0.5


def verdict(profiles: Profiles) -> str:
    """Return one sentence on why the ranks are slow, or that they are not."""
    waits = waiting(profiles)
    by_rank = accounts(profiles, waits)
    mean = average(by_rank)
    step = "a step" if any(profile.steps for profile in profiles.values()) else "the cell"
    waited, loaded = mean.part(mean.waiting), mean.part(mean.input)
    if waited >= _LARGE and waited >= min(a.part(a.input) for a in by_rank.values()):
        return _waiting_sentence(waited, step, waits.late)
    if loaded >= _INPUT_BOUND:
        bound = [rank for rank, a in by_rank.items() if a.part(a.input) >= _INPUT_BOUND]
        where = _where(bound, profiles)
        part = format_percent(loaded)
        return f"Input-bound{where}: {part} of {step} is waiting for the DataLoader."
    communicated = mean.part(mean.communication)
    balanced = "The ranks are balanced: " if len(profiles) > 1 else ""
    if communicated >= _COMMUNICATION:
        overlap = f", {format_percent(mean.overlap)} of it overlapped with compute"
        part = format_percent(communicated)
        return _capital(f"{balanced}communication is {part} of {step}{overlap}.")
    if mean.part(mean.other) >= _OTHER:
        return _capital(f"{balanced}{_other_sentence(mean, step, profiles)}")
    parts = f"compute is {format_percent(mean.part(mean.compute))} of {step}"
    if len(profiles) > 1:
        parts += f", communication {format_percent(communicated)}, waiting {format_percent(waited)}"
    return _capital(f"{balanced}{parts}.")


def rows(profiles: Profiles) -> list[tuple[str, ...]]:
    """Return a table: a header, and a row for each rank."""
    measured = any(profile.memory for profile in profiles.values())
    header = ("rank", "step", "compute", "input", "communication", "waiting", "other", "overlap")
    table: list[tuple[str, ...]] = [(*header, "peak memory") if measured else header]
    for rank, a in accounts(profiles, waiting(profiles)).items():
        parts = (a.compute, a.input, a.communication, a.waiting, a.other)
        written = [f"{format_seconds(part)} ({format_percent(a.part(part))})" for part in parts]
        overlap = format_percent(a.overlap) if a.hidden + a.communication else "-"
        row = (str(rank), format_seconds(a.step), *written, overlap)
        table.append((*row, format_bytes(profiles[rank].memory)) if measured else row)
    return table


def remarks(profiles: Profiles) -> list[str]:
    """Return what a reader of the table must know: what was measured, and what was left out."""
    counts = {profile.steps for profile in profiles.values()}
    dropped = any(profile.dropped for profile in profiles.values())
    told = []
    if len(counts) > 1:
        listed = ", ".join(f"{p.steps} on rank {rank}" for rank, p in sorted(profiles.items()))
        told.append(f"The ranks ran different numbers of optimizer steps: {listed}.")
    elif number := max(counts):
        first = " after the first one, which is left out" if dropped else ""
        many = "per step, the average of" if number > 1 else "of"
        steps = "optimizer steps" if number > 1 else "optimizer step"
        told.append(f"Times are {many} {number} {steps}{first}.")
    else:
        told.append("The cell calls no optimizer.step(): the whole cell counts as one step.")
    if left_out := max(profile.left_out for profile in profiles.values()):
        told.append(f"Waiting is measured without {left_out:,} collectives, as there are too many.")
    return told


def _waiting_sentence(part: float, step: str, late: Late | None) -> str:
    loss = f"{format_percent(part)} of {step} is waiting"
    if late is None:
        return f"{loss} for other ranks, but no rank is late each time."
    arrives = "arrives" if len(late.ranks) == 1 else "arrive"
    what = f"{name_ranks(late.ranks)} {arrives} {format_seconds(late.seconds)} late"
    return f"{loss}: {what} at {late.op}{_because(late.cause)}."


def _because(cause: Spent | None) -> str:
    if cause is None:
        return "; no single cause explains most of it"
    if cause.on == "input":
        return " because of its DataLoader"
    if cause.on == "gpu":
        return " because its GPU computes longer"
    return (
        f" because of `{cause.name}`" if cause.on == "annotation" else f" because of {cause.name}"
    )


def _other_sentence(mean: Account, step: str, profiles: Profiles) -> str:
    seconds, apart, what = mean.other, 0.0, "Python code between operations"
    if mean.copies >= _MOST * mean.other:
        seconds, what = mean.copies, "copying between the CPU and the GPU"
        apart = max(0.0, mean.other - mean.copies)  # a line may have all of that
    said = f"{format_percent(mean.part(seconds))} of {step} is {what}"
    totals: dict[str, float] = {}
    for profile in profiles.values():
        for spent in profile.spent:
            share = spent.seconds / max(1, profile.steps) / len(profiles)
            totals[spent.name] = totals.get(spent.name, 0.0) + share
    place = max(totals, key=lambda one: totals[one], default="")
    if place and totals[place] - apart >= _MOST * seconds:
        return f"{said}, most of it in {place}."
    return f"{said}; no single line explains most of it."


def _where(ranks: list[int], profiles: Profiles) -> str:
    if len(profiles) == 1:
        return ""
    return " on all ranks" if len(ranks) == len(profiles) else f" on {name_ranks(ranks)}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
