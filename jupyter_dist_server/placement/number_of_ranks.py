"""How many ranks a request asks for, or Slurm."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..common.errors import DistError
from ..common.inside_slurm import is_inside
from ..common.rank_specs import MAX_RANKS
from .requests.request import PoolRequest


def environment_of(request: PoolRequest) -> dict[str, str]:
    """Return the environment that ranks will have, as far as the request says."""
    base = os.environ if request.base_env is None else request.base_env
    return dict(base) | request.added_env


def number_of_ranks(request: PoolRequest) -> int | None:
    """Return how many ranks the request, or Slurm, asks for, if either says."""
    return request.num_ranks or slurm_tasks(request)


def slurm_tasks(request: PoolRequest) -> int | None:
    """Return how many ranks Slurm asks for, if the request says nothing of it."""
    named = request.num_ranks or request.gpu_ids or request.map or request.cpu_ranks
    return None if named else _tasks_of(environment_of(request))


def _tasks_of(environment: Mapping[str, str]) -> int | None:
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
