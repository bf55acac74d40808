"""Placement by a user's function, which is called in the notebook."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..common.errors import DistError
from ..gpus.cuda_visible_devices import hides_all
from ..gpus.inventory import Gpu
from ..gpus.readers.read_gpu_state import read_gpu_state
from ..placement.allocate_gpus import Allocator
from ..placement.gpu_policies import find, free_memory
from ..placement.new_pool_record import new_record
from ..placement.ranks_to_gpus import GpusUnknown, allowed, taken
from ..placement.requests.field_checks import CPU, GpuId
from ..placement.requests.request import PoolRequest


@dataclass(frozen=True)
class FreeGpu(Gpu):
    """A GPU that a placement function may choose, and how busy it is now."""

    memory_free: int | None = None
    """Bytes; like `utilization`, `None` if the driver does not report it."""
    utilization: float | None = None
    """Percent."""


Place = Callable[[int, list[FreeGpu]], GpuId | Gpu]
"""``place(rank, gpus) -> gpu``: one of `gpus`, its index or UUID, or ``"cpu"``."""


async def custom_map(place: Place, request: PoolRequest) -> PoolRequest:
    """Return the request with the GPU that a function chooses for each rank.

    It is called for one rank after another, with the free GPUs; with all, if the request is to
    wait. Without `num_ranks`, there is a rank for each. Without GPUs, it is not called.
    """
    checked = replace(request, base_env=dict(os.environ), kernel_pid=os.getpid())
    seen = await read_gpu_state()
    if seen.no_answer and not hides_all(os.environ):
        raise GpusUnknown(seen.inventory.fault)
    inventory = allowed(checked, seen.inventory)
    if not inventory.gpus:
        return replace(request, placement="cycle")
    reasons = Allocator(checked, new_record(checked)).why_unavailable(seen)
    free = []
    for gpu in inventory.gpus:
        if gpu.uuid not in reasons or checked.wait is not None:
            busy: Any = seen.samples.get(gpu.uuid, {}).get("utilization")
            memory = free_memory(gpu, seen.samples)
            free.append(FreeGpu(**vars(gpu), memory_free=memory, utilization=busy))
    chosen = {}
    for rank in range((checked.num_ranks or len(free)) if free else 0):
        try:
            answer = place(rank, list(free))
        except IndexError as error:
            if len(free) == len(inventory.gpus):
                raise
            begin = f"The placement function failed for rank {rank} ({error}): "
            refusals = {one: reasons[one.uuid] for one in inventory.gpus if one.uuid in reasons}
            raise taken(begin, inventory.gpus, refusals) from error
        if isinstance(answer, bool) or not isinstance(answer, Gpu | int | str):
            raise DistError(
                "unknown_gpu",
                f"The placement function returned {answer!r} for rank {rank}.",
                'It must return one of the GPUs that it gets, the index or UUID of one, or "cpu".',
            )
        if answer == CPU:
            chosen[str(rank)] = CPU
        else:
            gpu = answer if isinstance(answer, Gpu) else find(answer, inventory)
            chosen[str(rank)] = gpu.uuid
    return PoolRequest.from_json(request.to_json() | {"map": chosen}) if chosen else request
