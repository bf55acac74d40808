"""What a Slurm allocation says, if we run inside one.

See the output environment variables in https://slurm.schedmd.com/srun.html and sbatch.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..common.errors import DistError
from ..common.rank_specs import MAX_RANKS
from ..gpus.inventory import Inventory

_DIGITS = 9
"""More of them are no number of tasks."""


def is_inside(environment: Mapping[str, str]) -> bool:
    """Tell whether an environment is that of a Slurm job."""
    return "SLURM_JOB_ID" in environment


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


def narrow(inventory: Inventory, environment: Mapping[str, str]) -> Inventory:
    """Leave the GPUs of the job, where nothing else has done so.

    Slurm hides the others by a device cgroup, or by ``CUDA_VISIBLE_DEVICES``; only where the
    latter is gone does ``SLURM_JOB_GPUS``, which counts as ``nvidia-smi`` does on the whole node,
    tell more than we see.
    """
    listed = _numbers(environment.get("SLURM_JOB_GPUS", ""))
    hidden = len({gpu.index for gpu in inventory.gpus}) <= sum(map(len, listed))
    if not is_inside(environment) or not listed or hidden or "CUDA_VISIBLE_DEVICES" in environment:
        return inventory
    allowed = tuple(gpu for gpu in inventory.gpus if any(gpu.index in some for some in listed))
    reason = f"SLURM_JOB_GPUS={environment['SLURM_JOB_GPUS']} lists no GPU of this machine."
    return replace(inventory, gpus=allowed, reason=None if allowed else reason)


def _numbers(text: str) -> list[range]:
    """Read ``0,2-3``; a range costs nothing, however long it is."""
    found = re.findall(r"\b(\d{1,9})(?:-(\d{1,9}))?\b", text)
    return [range(int(first), int(last or first) + 1) for first, last in found]
