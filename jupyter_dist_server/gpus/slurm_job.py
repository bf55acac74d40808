"""The GPUs of the Slurm allocation that we run in.

See the output environment variables in https://slurm.schedmd.com/srun.html and sbatch.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..common.inside_slurm import is_inside
from ..common.protocol.sampler_messages import Inventory


def narrow(inventory: Inventory, environment: Mapping[str, str]) -> Inventory:
    """Leave only the GPUs of the job, if neither a cgroup nor CUDA_VISIBLE_DEVICES hides the rest.

    ``SLURM_JOB_GPUS`` has the indices of ``nvidia-smi`` on the whole node.
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
