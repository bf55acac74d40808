"""GPUs for ranks that join a pool, and where each of them is."""

from __future__ import annotations

import os
import time

from ..common.protocol.pool_file import PlacedRank, PoolFile
from ..common.protocol.pool_record import PoolRecord
from ..gpus.cuda_visible_devices import MASK
from .new_pool_record import gpu_reference
from .ranks_to_gpus import Placement
from .requests.request import PoolRequest

_BY_RULE = ("cycle", "free-memory", "performance")


def request_for_more(
    pool: PoolFile, record: PoolRecord, count: int, wait: float | None
) -> PoolRequest | None:
    """Return what to ask for `count` more ranks; `None` if the pool's ranks use no GPUs."""
    if count <= 0 or not any(rank.gpu for rank in pool.ranks):
        return None
    environment = dict(os.environ)
    environment.pop(MASK, None)
    if pool.visible is not None:  # to the notebook
        environment[MASK] = pool.visible
    limit = None if record.ends_by is None else max(1.0, record.ends_by - time.time())
    return PoolRequest(
        num_ranks=count,
        placement=record.placement if record.placement in _BY_RULE else None,
        one_rank_per_gpu="nccl" in record.backend,
        oversubscribe=record.leases == "shared" and "nccl" not in record.backend,
        force=pool.force,
        wait=wait,
        time_limit=limit,
        base_env=environment,
    )


def added_ranks(pool: PoolFile, placement: Placement) -> list[PlacedRank]:
    """Return where new ranks are; those on whole GPUs see all whole GPUs of the pool."""
    masks = [rank.mask for rank in pool.ranks if rank.gpu and ":" not in rank.gpu.label]
    known = [] if not masks or masks[-1] is None else masks[-1].split(",")
    by_uuid = placement.by_uuid or any(one.startswith("GPU-") for one in known)
    names = {gpu: gpu.uuid if by_uuid else str(gpu.index) for gpu in placement.visible}
    shown = [*dict.fromkeys([*known, *names.values()])]
    placed = []
    for rank, gpu in enumerate(placement.gpus):
        if gpu in names:
            where = PlacedRank(
                f"cuda:{shown.index(names[gpu])}", gpu_reference(gpu), ",".join(shown)
            )
        else:
            where = PlacedRank(placement.device(rank), gpu_reference(gpu), placement.mask(rank))
        placed.append(where)
    return placed
