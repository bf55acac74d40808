"""Placement by a function of the user, which is called in the notebook."""

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
from ..placement.new_pool_record import allowed, new_record
from ..placement.ranks_to_gpus import GpusUnknown, taken
from ..placement.requests.field_checks import GpuId
from ..placement.requests.request import PoolRequest


@dataclass(frozen=True)
class FreeGpu(Gpu):
    """A GPU that a function may choose, with how busy it is just now."""

    memory_free: int | None = None
    """Bytes; `None` if the driver does not tell, as for `utilization`."""
    utilization: float | None = None
    """Percent."""


Place = Callable[[int, list[FreeGpu]], GpuId | Gpu]
"""``place(rank, gpus) -> gpu``: one of `gpus`, or its index or UUID."""


async def custom_map(place: Place, request: PoolRequest) -> PoolRequest:
    """Ask a function for the GPU of each rank.

    Parameters
    ----------
    place : callable
        Called for one rank after the other, with the GPUs that are free; with those that are not,
        too, if the request is to wait.
    request : PoolRequest
        What the user asks for; without `num_ranks` there is a rank for each GPU.

    Returns
    -------
    PoolRequest
        With a `map`; on a machine without GPUs, with what tells that nothing is placed.

    Raises
    ------
    DistError
        If it returns what is no GPU here, or has too few to choose from; or NVML does not answer.
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
                "It must return one of the GPUs that it gets, or the index or UUID of one.",
            )
        gpu = answer if isinstance(answer, Gpu) else find(answer, inventory)
        chosen[str(rank)] = gpu.uuid
    return PoolRequest.from_json(request.to_json() | {"map": chosen}) if chosen else request
