"""GPUs for ranks that join a pool, and where each of them is."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace

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
    """Return what to ask for `count` more ranks; `None` if no GPU is to be asked for.

    Ranks of a pool that share its GPUs go on to do so.
    """
    gpus = gpus_of(pool)
    if count <= 0 or not gpus or len(set(gpus)) < len(gpus):
        return None
    return replace(
        request_again(pool, record),
        num_ranks=count,
        gpu_ids=None,
        placement=record.placement if record.placement in _BY_RULE else None,
        one_rank_per_gpu=record.leases != "shared",
        oversubscribe=record.leases == "shared",
        wait=wait,
    )


def request_again(pool: PoolFile, record: PoolRecord) -> PoolRequest:
    """Return what to ask for the GPUs that a pool had, however long others have them."""
    environment = dict(os.environ)
    environment.pop(MASK, None)
    if pool.visible is not None:  # to the notebook
        environment[MASK] = pool.visible
    uuids = tuple(dict.fromkeys(gpus_of(pool)))
    return PoolRequest(
        num_ranks=len(uuids),
        gpu_ids=uuids,
        placement="ids",
        force=pool.force,
        wait=math.inf,
        time_limit=None if record.ends_by is None else max(1.0, record.ends_by - time.time()),
        base_env=environment,
    )


def gpus_of(pool: PoolFile) -> list[str]:
    """Return the UUIDs of the GPUs of a pool's ranks."""
    return [rank.gpu.uuid for rank in pool.ranks if rank.gpu]


def as_before(pool: PoolFile, count: int) -> list[PlacedRank]:
    """Return where `count` more ranks are that get no GPU of their own: where others are."""
    period, size = max(1, len(set(gpus_of(pool)))), len(pool.ranks)
    return [pool.ranks[rank % period] for rank in range(size, size + count)]


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
