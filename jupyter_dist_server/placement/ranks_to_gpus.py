"""Which GPU each rank gets: pure functions of a request and the GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from ..common.errors import DistError
from ..common.protocol.offers import Offer
from ..common.rank_specs import format_ranks
from ..common.units import count_ranks, format_bytes, name_gpus
from ..gpus import slurm_job
from ..gpus.cuda_visible_devices import counts_differ, narrow, write_mask
from ..gpus.inventory import NO_GPU, Gpu, Inventory
from ..gpus.metrics import Samples
from .choose_backend import choose_backend
from .gpu_policies import candidates, free_memory, order
from .number_of_ranks import environment_of, slurm_tasks
from .requests.field_checks import CPU
from .requests.request import PoolRequest

CPU_RANKS = 2
ALL_ON_CPU = "All ranks run on the CPU, as requested."


class GpusTaken(DistError):
    """There are GPUs, but they are not available now; waiting may help."""

    def __init__(self, message: str, hint: str, offers: Sequence[Offer] = ()) -> None:
        super().__init__("gpus_taken", message, hint)
        self.offers = offers

    def to_json(self) -> dict[str, Any]:
        """Return the body of a REST error, with what can be done instead."""
        return super().to_json() | {"offers": msgspec.to_builtins(self.offers)}


class GpusUnknown(GpusTaken):
    """NVML does not say which GPUs there are; waiting may help."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"It is not known which GPUs there are. {reason}",
            "Check that nvidia-smi responds, and try again, or wait with --wait. For ranks on the "
            "CPU only, use -n 2 --cpu-ranks 2.",
        )
        self.code = "gpus_unknown"


@dataclass(frozen=True)
class Placement:
    """The device of each rank, and what the user should know about it."""

    gpus: tuple[Gpu | None, ...]
    """The GPU of each rank; `None` is the CPU."""
    policy: str
    backend: str
    notices: tuple[str, ...] = field(default=())
    by_uuid: bool = False
    """Whether masks name GPUs by UUID, as CUDA may count differently from NVML."""
    hybrid: bool = False
    """Whether ranks on the CPU must not see the GPUs that there are."""

    @property
    def used(self) -> list[Gpu]:
        """The pool's GPUs, each once, in the order of ranks."""
        return [gpu for gpu in dict.fromkeys(self.gpus) if gpu]

    @property
    def visible(self) -> list[Gpu]:
        """What ``CUDA_VISIBLE_DEVICES`` holds for all ranks on whole GPUs."""
        return [gpu for gpu in self.used if gpu.mig is None]

    def device(self, rank: int) -> str:
        """Return the torch device of a rank, counted inside its mask."""
        gpu = self.gpus[rank]
        if gpu is None:
            return "cpu"
        return f"cuda:{self.visible.index(gpu) if gpu.mig is None else 0}"

    def mask(self, rank: int) -> str | None:
        """Return a rank's ``CUDA_VISIBLE_DEVICES``; `None` is for having none.

        All ranks see the whole GPUs of their pool, in their order, so that ``LOCAL_RANK`` indexes
        into them as under torchrun. CUDA gives a process at most one MIG instance.
        """
        gpu = self.gpus[rank]
        if gpu is None:
            return "" if self.hybrid else None
        shown = self.visible if gpu.mig is None else [gpu]
        by_uuid = self.by_uuid or gpu.mig is not None
        return write_mask(shown, by_uuid=by_uuid)


def allowed(request: PoolRequest, inventory: Inventory) -> Inventory:
    """Return the GPUs that a request may use: an inherited mask, or Slurm, forbids some.

    None if all ranks are to run on the CPU.
    """
    if request.on_gpus is None:
        return Inventory(reason=ALL_ON_CPU)
    environment = environment_of(request)
    return slurm_job.narrow(narrow(inventory, environment), environment)


def place_ranks(
    request: PoolRequest,
    inventory: Inventory,
    samples: Samples | None = None,
    unavailable: Mapping[str, str] | None = None,
) -> Placement:
    """Decide which GPUs the ranks get, see `place`; raise `DistError` if that is impossible."""
    tasks = slurm_tasks(request)
    placement = place(
        replace(request, num_ranks=tasks or request.num_ranks), inventory, samples, unavailable
    )
    if tasks:
        notice = f"Starting {tasks} ranks, as set by SLURM_NTASKS."
        placement = replace(placement, notices=(notice, *placement.notices))
    return placement


def place(
    request: PoolRequest,
    inventory: Inventory,
    samples: Samples | None = None,
    unavailable: Mapping[str, str] | None = None,
) -> Placement:
    """Decide where ranks go, those on the CPU too.

    Without `num_ranks` there is one rank per GPU, or two on a machine without. `unavailable` says
    by UUID why GPUs are not available, in words such as ``"leased by bob"``; see
    `unavailable_gpus`.

    Raises `GpusTaken` if GPUs are taken or short of memory, and `DistError` if a GPU does not
    exist, there are never enough, or the backend cannot work.
    """
    if not inventory.gpus:
        return _on_cpu(request, inventory)
    if request.is_hybrid:
        assert request.on_gpus  # or `allowed` had left no GPU
        return _hybrid(request, place(request.on_gpus, inventory, samples, unavailable))
    samples = samples or {}
    wanted = candidates(request, inventory)
    refusals = _refusals(request, wanted, samples, unavailable or {})
    why_first = few = None
    by_ids = request.policy in ("ids", "map")
    if by_ids:
        count = request.num_ranks or len(wanted)
        chosen = wanted
        if refused := [gpu for gpu in wanted[:count] if gpu in refusals]:
            raise taken("", refused, refusals)
    else:
        free = [gpu for gpu in wanted if gpu not in refusals]
        count = request.num_ranks or len(free)
        must_be_free = request.wait is not None or request.one_rank_per_gpu
        if request.min_ranks and request.min_ranks <= len(free) < count:
            few = f"{count_ranks(len(free))} of {count} started: so many GPUs are free."
            count = len(free)
        elif request.min_ranks:
            must_be_free = True
        if not free:
            raise taken("No GPU is free: ", wanted, refusals)
        if len(free) < min(count, len(wanted)) and must_be_free:
            are = "is" if len(free) == 1 else "are"
            begin = f"Only {len(free)} of {len(wanted)} GPUs {are} free for {count} ranks: "
            raise taken(begin, wanted, refusals)
        chosen, why_first = order(request, free, inventory, samples)
    gpus = tuple(chosen[rank % len(chosen)] for rank in range(count))
    _check_sharing(request, gpus)
    notices = [*inventory.problems, *filter(None, [few])]
    if refusals and not by_ids:
        notices.append(f"Not used: {_say(wanted, refusals)}.")
    if why_first:
        sizes = ", ".join(f"GPU {gpu.label} ({why_first(gpu)})" for gpu in dict.fromkeys(gpus))
        notices.append(f"Placement by {request.policy.replace('-', ' ')}: {sizes}.")
    backend, about_backend = choose_backend(request, gpus)
    notices += filter(None, [about_backend])
    by_uuid = counts_differ(inventory)
    return Placement(gpus, request.policy, backend, tuple(notices), by_uuid=by_uuid)


def _hybrid(request: PoolRequest, placed: Placement) -> Placement:
    """Add the ranks on the CPU to those that are placed on GPUs."""
    gpus: list[Gpu | None] = [*placed.gpus, *[None] * (request.cpu_ranks or 0)]
    if request.map:
        on_gpus = iter(placed.gpus)
        gpus = [None if request.map[r] == CPU else next(on_gpus) for r in sorted(request.map)]
    here = [rank for rank, gpu in enumerate(gpus) if gpu]
    there = [rank for rank, gpu in enumerate(gpus) if not gpu]
    several, run = ("s", "run") if len(there) > 1 else ("", "runs")
    notice = f"Rank{several} {format_ranks(there)} {run} on the CPU"
    if request.backend != "none":
        notice += ", so the backend is gloo"
        if "nccl" in placed.backend and len(here) > 1:
            notice += f'; for NCCL on the others, use dist.new_group({here}, backend="nccl")'
    return replace(
        placed,
        gpus=tuple(gpus),
        backend=choose_backend(request, gpus)[0],
        notices=(*placed.notices, f"{notice}."),
        hybrid=True,
    )


def _on_cpu(request: PoolRequest, inventory: Inventory) -> Placement:
    if request.backend and "nccl" in request.backend:
        raise DistError(
            "backend_needs_gpu",
            f"The backend {request.backend} needs GPUs. {inventory.fault}",
            "Use --backend gloo, or omit --backend.",
            field="backend",
        )
    about_gpus = (request.map, request.performance, request.placement, request.min_free_memory)
    reason = inventory.reason or ""
    notices = []
    if inventory.reason == ALL_ON_CPU:
        notices = [reason]
    elif request.gpu_ids or request.map:
        notices = [f"GPU IDs are ignored: {reason}"]
    elif any(about_gpus):
        notices = [f"GPU placement is ignored: {reason}"]
    elif inventory.reason not in (None, NO_GPU):
        notices = [reason]  # there may be GPUs, and the user should know
    count = request.num_ranks or len(request.map or ()) or request.cpu_ranks or CPU_RANKS
    notices += inventory.problems
    gpus = (None,) * count
    backend, _ = choose_backend(request, gpus)
    return Placement(gpus, "cycle", backend, tuple(notices), hybrid=request.is_hybrid)


def _refusals(
    request: PoolRequest, gpus: list[Gpu], samples: Samples, unavailable: Mapping[str, str]
) -> dict[Gpu, str]:
    """Return why GPUs are not available, in words after "GPU 1 is"."""
    least = request.min_free_memory or 0
    if gpus and all(gpu.memory_total < least for gpu in gpus):
        largest = max(gpus, key=lambda gpu: gpu.memory_total)
        raise DistError(
            "not_enough_memory",
            f"No GPU has {format_bytes(least)}: the largest, GPU {largest.label}, has "
            f"{format_bytes(largest.memory_total)}.",
            field="min_free_memory",
        )
    refusals = {}
    for gpu in gpus:
        free = free_memory(gpu, samples)
        if gpu.uuid in unavailable:
            refusals[gpu] = unavailable[gpu.uuid]
        elif least and (free is None or free < least):
            has = "of unknown size" if free is None else format_bytes(free)
            refusals[gpu] = f"too full ({has} free, {format_bytes(least)} needed)"
    return refusals


def _say(gpus: Iterable[Gpu], refusals: Mapping[Gpu, str]) -> str:
    """Say why GPUs are not available, those with the same reason together."""
    labels: dict[str, list[str]] = {}
    for gpu in dict.fromkeys(gpus):
        if gpu in refusals:
            labels.setdefault(refusals[gpu], []).append(gpu.label)
    return "; ".join(
        f"{name_gpus(those)} {'are' if len(those) > 1 else 'is'} {why}"
        for why, those in labels.items()
    )


def taken(begin: str, gpus: Iterable[Gpu], refusals: Mapping[Gpu, str]) -> GpusTaken:
    """Return the error of a start that needs GPUs which are not available now."""
    said = _say(gpus, refusals)
    force = ", or use it anyway with --force" if "used by" in said else ""
    return GpusTaken(f"{begin}{said}.", f"Choose other GPUs, wait for these with --wait{force}.")


def _check_sharing(request: PoolRequest, gpus: tuple[Gpu, ...]) -> None:
    count, several = len(gpus), len(set(gpus))
    numbers = f"{count} ranks, only {several} GPU{'s' * (several > 1)}."
    if several < count and request.one_rank_per_gpu:
        raise DistError(
            "not_enough_gpus",
            f"Ranks must not share GPUs: need {numbers}",
            "Ask for fewer ranks, name more GPUs, or omit --one-rank-per-gpu.",
            field="one_rank_per_gpu",
        )
    if not request.backend or "nccl" not in request.backend:
        return
    if several < count:
        raise DistError(
            "backend_needs_gpu",
            f"NCCL refuses two ranks on one GPU: {numbers}",
            "Use --backend gloo, fewer ranks, or more GPUs.",
            field="backend",
        )
    if count > 1 and any(gpu.mig is not None for gpu in gpus):
        raise DistError(
            "backend_needs_gpu",
            "NCCL does not support communication between MIG instances.",
            "Use --backend gloo, or omit --backend.",
            field="backend",
        )
