"""From a request to the record of a pool: first without GPUs, then with them."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

from ..common.protocol.pool_record import GpuReference, PoolRecord, RankRecord
from ..gpus import slurm_job
from ..gpus.cuda_visible_devices import narrow
from ..gpus.inventory import Gpu, Inventory
from ..gpus.metrics import Samples
from ..jobs.leases.lease import Lease
from . import slurm_ranks
from .ranks_to_gpus import Placement, place
from .requests.request import PoolRequest


def environment_of(request: PoolRequest) -> dict[str, str]:
    """Return the environment that ranks are to have, as far as the request says."""
    base = os.environ if request.base_env is None else request.base_env
    return dict(base) | request.added_env


def allowed(request: PoolRequest, inventory: Inventory) -> Inventory:
    """Return the GPUs that a request may use at all: an inherited mask, or Slurm, forbids some."""
    environment = environment_of(request)
    return slurm_job.narrow(narrow(inventory, environment), environment)


def place_ranks(
    request: PoolRequest,
    inventory: Inventory,
    samples: Samples | None = None,
    unavailable: Mapping[str, str] | None = None,
) -> Placement:
    """Decide which GPUs the ranks get; see `place`.

    Raises
    ------
    DistError
        If the request cannot be placed.
    """
    tasks = _tasks(request)
    placement = place(
        replace(request, num_ranks=tasks or request.num_ranks), inventory, samples, unavailable
    )
    if tasks:
        notice = f"Starting {tasks} ranks, as set by SLURM_NTASKS."
        placement = replace(placement, notices=(notice, *placement.notices))
    return placement


def number_of_ranks(request: PoolRequest) -> int | None:
    """Return how many ranks are asked for, by the request or by Slurm, if that is said."""
    return request.num_ranks or _tasks(request)


def _tasks(request: PoolRequest) -> int | None:
    named = request.num_ranks or request.gpu_ids or request.map
    return None if named else slurm_ranks.number_of_ranks(environment_of(request))


def new_record(request: PoolRequest) -> PoolRecord:
    """Return the record of a pool that has no GPUs, and so no ranks, yet."""
    return PoolRecord(
        id="p-" + uuid.uuid4().hex[:8],
        kernel_id=request.kernel_id,
        name=_shown(request.name),
        world_size=request.num_ranks or len(request.map or ()),
        backend=request.backend or "",
        placement=request.policy,
        node_map=request.node_map,
        time_limit=request.time_limit,
        idle_limit=request.idle_limit,
        start_method=request.start_method,
        python=request.python or sys.executable,
        cwd=_shown(request.cwd or os.getcwd()),
    )


def _shown(path: str) -> str:
    """Return a path as it can be shown: JSON has no bytes that are not UTF-8."""
    return path.encode(errors="replace").decode()


class AssignedFields(TypedDict, total=False):
    """The fields of a pool's record that are known when its GPUs are."""

    world_size: int
    backend: str
    placement: str
    leases: str | None
    notices: list[str]
    ranks: list[RankRecord]
    engine: str
    engine_job: str


def assigned(placement: Placement, leased: str | None) -> AssignedFields:
    """Return what a pool's record says once its GPUs are known, and how they are leased."""
    return {
        "world_size": len(placement.gpus),
        "backend": placement.backend,
        "placement": placement.policy,
        "leases": leased,
        "notices": list(placement.notices),
        "ranks": [
            RankRecord(rank, rank, placement.device(rank), gpu_reference(gpu))
            for rank, gpu in enumerate(placement.gpus)
        ],
    }


def gpu_reference(gpu: Gpu | None) -> GpuReference | None:
    """Return what a rank's record says of its GPU."""
    if gpu is None:
        return None
    return GpuReference(gpu.index, gpu.label, gpu.uuid, gpu.name)


@dataclass
class Allocation:
    """What a pool was given; closing it leaves its lease to the agent."""

    placement: Placement
    lease: Lease | None = None
    leased: str | None = None
    """``exclusive`` or ``shared``, if it is."""

    @property
    def fields(self) -> AssignedFields:
        """What the pool's record says of it."""
        return assigned(self.placement, self.leased)

    @property
    def descriptors(self) -> list[int]:
        """What an agent has to be given to hold the lease."""
        return self.lease.descriptors if self.lease else []

    def close(self) -> None:
        """Hold the lease no longer; it ends unless an agent has it by now."""
        if self.lease:
            self.lease.close()
