"""Slurm's variables in jobs of this queue, as scripts for ``sbatch`` read them.

See the output environment variables in https://slurm.schedmd.com/sbatch.html. Those by which
Lightning, torchrun or our own pools would take a job for a task of ``srun`` are not set:
``SLURM_PROCID``, ``SLURM_LOCALID``, ``SLURM_NTASKS``, ``SLURM_STEP_…``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ..common.inside_slurm import OURS, is_inside
from .schedule.may_start import write_dependency
from .store.job import Job
from .store.store import Store

_READ = re.compile(r"\$\{(SLURM[A-Z]*_\w+)(?!\w|:?[-+=])|\$(SLURM[A-Z]*_\w+)")
"""Not ``${NAME-default}`` and the like."""
_SET = re.compile(r"\b(SLURM[A-Z]*_\w+):?=")
_ALWAYS = [
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_JOB_NAME",
    "SLURM_SUBMIT_DIR",
    "SLURM_SUBMIT_HOST",
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPUS_ON_NODE",
    "SLURMD_NODENAME",
    "SLURM_JOB_NODELIST",
    "SLURM_CLUSTER_NAME",
]
_OF_GPUS = ["SLURM_GPUS", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS"]
_OF_ARRAYS = [
    f"SLURM_ARRAY_{name}" for name in ("JOB_ID", "TASK_ID", "TASK_COUNT", "TASK_MAX", "TASK_MIN")
]
_DEPENDENCY = "SLURM_JOB_DEPENDENCY"
NAMES = {*_ALWAYS, *_OF_GPUS, *_OF_ARRAYS, _DEPENDENCY}
"""All that may be set."""


def slurm_variables(job: Job, store: Store, mask: str) -> dict[str, str]:
    """Return the variables of a job that is about to start; `mask` has its GPUs."""
    cores, host = str(max(1, job.cpus)), os.uname().nodename
    values = [str(job.id), str(job.id), job.name, job.spec.submitted_in or job.spec.cwd, host]
    found = dict(zip(_ALWAYS, [*values, cores, cores, host, host, OURS], strict=True))
    if job.gpus:
        found |= dict(zip(_OF_GPUS, [str(job.gpus), str(job.gpus), mask], strict=True))
        if not mask.replace(",", "").isdecimal():  # it has UUIDs, which no script expects there
            del found["SLURM_JOB_GPUS"]
    if job.array is not None:
        count, least, greatest = store.tasks_of(job.array)
        values = [str(one) for one in (job.array, job.task, count, greatest, least)]
        found |= dict(zip(_OF_ARRAYS, values, strict=True))
    if upon := store.dependencies_of(job.id):
        words = (write_dependency(kind, other) for other, kind in upon)
        found[_DEPENDENCY] = ",".join(words)
    return found


def without_ours(environment: Mapping[str, str]) -> dict[str, str]:
    """Leave out what a job has from this queue, for a job that it submits."""
    if is_inside(environment):  # those of a real Slurm
        return dict(environment)
    return {name: value for name, value in environment.items() if name not in NAMES}


def missing_variables(script: str, environment: Mapping[str, str]) -> list[str]:
    """Return the variables of Slurm that a script reads and that nobody sets."""
    own = {*_SET.findall(script)}
    read = {braced or plain for braced, plain in _READ.findall(script)}
    return sorted(read - own - NAMES - environment.keys())
