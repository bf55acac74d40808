"""Whether the running pool matches the options of a new start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ..common.protocol.pool_record import GpuReference, PoolRecord
from ..placement.requests.field_checks import CPU, GpuId
from ..placement.requests.request import PoolRequest

_NO_MATTER = ("wait", "timeout", "node_python")
"""Options that concern the start only."""


def can_reuse(request: PoolRequest, record: PoolRecord) -> bool:
    """Tell whether a running pool has all that is asked for.

    It has not if the record does not tell, as for environment variables.
    """
    gpus = [rank.gpu for rank in record.ranks if rank.gpu]
    has = {
        "num_ranks": record.world_size,
        "nodes": len({rank.node for rank in record.ranks}),
        "engine": record.engine,
        "node_map": record.node_map,
        "ranks_per_node": max(Counter(rank.node for rank in record.ranks).values(), default=0),
        "placement": record.placement,
        "one_rank_per_gpu": len({gpu.uuid for gpu in gpus}) == len(gpus),
        "oversubscribe": record.leases == "shared",
        "backend": record.backend,
        "start_method": record.start_method,
        "time_limit": record.time_limit,
        "idle_limit": record.idle_limit,
        "park_after": record.park_after,
    }
    unsaid = vars(PoolRequest())
    asked = {name: value for name, value in vars(request).items() if value != unsaid[name]}
    asked.pop("gpu_ids", None)
    asked.pop("map", None)
    if asked.pop("min_ranks", None) and asked.get("num_ranks") == record.wanted_ranks:
        asked.pop("num_ranks")
    asked.pop("cpu_ranks", None)
    return (
        record.state == "RUNNING"
        and all(name in _NO_MATTER or value == has.get(name) for name, value in asked.items())
        and (not gpus or request.cpu_ranks in (None, record.world_size - len(gpus)))
        and (request.gpu_ids is None or _same_gpus(request.gpu_ids, gpus))
        and (request.map is None or (record.engine == "local" and _same_map(request.map, record)))
    )


def _same_gpus(ids: Sequence[GpuId], gpus: list[GpuReference]) -> bool:
    """Tell whether ranks use exactly these GPUs; without GPUs, ids are ignored."""
    found = [{name for name in ids if _names(name, gpu)} for gpu in gpus]
    return not gpus or (all(found) and set().union(*found) == set(ids))


def _same_map(gpus: Mapping[int, GpuId], record: PoolRecord) -> bool:
    """Tell whether these are all ranks, each on its GPU; without GPUs, ids are ignored."""
    has_none = not any(rank.gpu for rank in record.ranks)
    return len(gpus) == record.world_size and all(
        _names(gpus[rank.rank], rank.gpu) if rank.gpu else has_none or gpus[rank.rank] == CPU
        for rank in record.ranks
    )


def _names(name: GpuId, gpu: GpuReference) -> bool:
    return name in (gpu.index, gpu.label) or gpu.uuid.startswith(str(name))
