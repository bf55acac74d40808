"""From a request to the record of a pool: first without GPUs, then with them."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..common.errors import DistError
from ..common.inside_slurm import is_inside
from ..common.protocol.pool_record import GpuReference, PoolRecord, RankRecord
from ..common.rank_specs import MAX_RANKS
from ..gpus import slurm_job
from ..gpus.cuda_visible_devices import narrow
from ..gpus.inventory import Gpu, Inventory
from ..gpus.metrics import Samples
from ..jobs.leases.lease import Lease
from .ranks_to_gpus import ALL_ON_CPU, Placement, place
from .requests.request import PoolRequest


def environment_of(request: PoolRequest) -> dict[str, str]:
    """Return the environment that ranks will have, as far as the request says."""
    base = os.environ if request.base_env is None else request.base_env
    return dict(base) | request.added_env


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
    tasks = _tasks(request)
    placement = place(
        replace(request, num_ranks=tasks or request.num_ranks), inventory, samples, unavailable
    )
    if tasks:
        notice = f"Starting {tasks} ranks, as set by SLURM_NTASKS."
        placement = replace(placement, notices=(notice, *placement.notices))
    return placement


def number_of_ranks(request: PoolRequest) -> int | None:
    """Return how many ranks the request, or Slurm, asks for, if either says."""
    return request.num_ranks or _tasks(request)


def _tasks(request: PoolRequest) -> int | None:
    named = request.num_ranks or request.gpu_ids or request.map or request.cpu_ranks
    return None if named else _slurm_tasks(environment_of(request))


def _slurm_tasks(environment: Mapping[str, str]) -> int | None:
    """Return the number of tasks on this node that Slurm was asked for.

    A single task says nothing: a server needs one, however many GPUs its ranks use. See the output
    environment variables in https://slurm.schedmd.com/srun.html.
    """
    several_nodes = environment.get("SLURM_JOB_NUM_NODES", "1") != "1"
    name = "SLURM_NTASKS_PER_NODE" if several_nodes else "SLURM_NTASKS"
    tasks = environment.get(name, "")
    if not is_inside(environment) or not tasks.isdecimal() or int(tasks) <= 1:
        return None
    if int(tasks) > MAX_RANKS:
        raise DistError(
            "bad_request",
            f"{name}={tasks} is too large: a pool has at most {MAX_RANKS} ranks.",
            "Set the number of ranks with -n.",
            field="num_ranks",
        )
    return int(tasks)


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
