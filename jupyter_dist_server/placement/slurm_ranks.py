"""How many ranks a Slurm allocation asks for, if we run inside one.

See the output environment variables in https://slurm.schedmd.com/srun.html and sbatch.html.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..common.errors import DistError
from ..common.rank_specs import MAX_RANKS
from ..gpus.slurm_job import is_inside

_DIGITS = 9
"""More of them are no number of tasks."""


def number_of_ranks(environment: Mapping[str, str]) -> int | None:
    """Return the number of tasks on this node, for which Slurm was asked; `None` if it was not.

    A single task says nothing: a server needs one, however many GPUs its ranks are to use.

    Raises
    ------
    DistError
        If there are more tasks than a pool can have ranks.
    """
    if not is_inside(environment):
        return None
    several_nodes = environment.get("SLURM_JOB_NUM_NODES", "1") != "1"
    name = "SLURM_NTASKS_PER_NODE" if several_nodes else "SLURM_NTASKS"
    tasks = environment.get(name, "").lstrip("0")
    if not tasks.isdecimal():
        return None
    if len(tasks) > _DIGITS or int(tasks) > MAX_RANKS:
        raise DistError(
            "bad_request",
            f"{name}={tasks[:_DIGITS]}{'…' * (len(tasks) > _DIGITS)} is too large: a pool has at "
            f"most {MAX_RANKS} ranks.",
            "Set the number of ranks with -n.",
            field="num_ranks",
        )
    return int(tasks) if int(tasks) > 1 else None
