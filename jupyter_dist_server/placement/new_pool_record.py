"""From a request to the record of a pool: first without GPUs, then with them."""

from __future__ import annotations

import os
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from ..common.protocol.pool_record import GpuReference, PoolRecord, RankRecord
from ..gpus.inventory import Gpu
from ..jobs.leases.lease import Lease
from .ranks_to_gpus import Placement
from .requests.request import PoolRequest


def new_record(request: PoolRequest) -> PoolRecord:
    """Return the record of a pool that has no GPUs, and so no ranks, yet."""
    return PoolRecord(
        id="p-" + uuid.uuid4().hex[:8],
        kernel_id=request.kernel_id,
        name=_shown(request.name),
        world_size=request.num_ranks or len(request.map or ()),
        backend=request.backend or "",
        wanted_ranks=request.num_ranks if request.min_ranks else None,
        placement=request.policy,
        node_map=request.node_map,
        time_limit=request.time_limit,
        idle_limit=request.idle_limit,
        park_after=request.park_after,
        start_method=request.start_method,
        python=request.python or sys.executable,
        cwd=_shown(request.cwd or os.getcwd()),
    )


def _shown(path: str) -> str:
    """Return a path as it can be shown: JSON has no bytes that are not UTF-8."""
    return path.encode(errors="replace").decode()


def gpu_reference(gpu: Gpu | None) -> GpuReference | None:
    """Return what a rank's record says about its GPU."""
    if gpu is None:
        return None
    return GpuReference(gpu.index, gpu.label, gpu.uuid, gpu.name)


@dataclass
class Allocation:
    """What a pool got; closing it leaves its lease to the agent."""

    placement: Placement
    lease: Lease | None = None
    leased: str | None = None
    """``exclusive`` or ``shared``, if there is a lease."""

    @property
    def fields(self) -> dict[str, Any]:
        """What the pool's record says about it, by field."""
        placed = self.placement
        return {
            "world_size": len(placed.gpus),
            "backend": placed.backend,
            "placement": placed.policy,
            "leases": self.leased,
            "notices": list(placed.notices),
            "ranks": [
                RankRecord(rank, rank, placed.device(rank), gpu_reference(gpu))
                for rank, gpu in enumerate(placed.gpus)
            ],
        }

    @property
    def descriptors(self) -> list[int]:
        """What an agent needs to hold the lease."""
        return self.lease.descriptors if self.lease else []

    def close(self) -> None:
        """Release the lease; the agent still holds it if it has the descriptors by now."""
        if self.lease:
            self.lease.close()
