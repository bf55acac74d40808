"""Refuses jobs that could never run here, or would fail as soon as they start."""

from __future__ import annotations

import os

from ...common.errors import DistError
from ...common.policy import check_gpus
from ...common.processes.control_groups import usable_cores, usable_memory
from ...common.units import format_bytes
from ..job_command import find_program
from ..store.job import Job, Spec
from ..store.slurm_formats import check_priority


def check_job(job: Job, is_array: bool) -> None:
    """Refuse what this machine cannot give, and options that contradict each other."""
    if job.gpus < 0 or job.cpus < 0:
        raise DistError("bad_option", "A number of GPUs or cores cannot be negative.")
    if job.cpus > (cores := usable_cores()):
        message = f"The job needs {job.cpus} cores, and there are {cores}."
        raise DistError("too_large", message, field="cpus")
    if job.memory > (there := usable_memory()):
        needs = f"The job needs {format_bytes(job.memory)} of memory"
        raise DistError("too_large", f"{needs}, and there are {format_bytes(there)}.", field="mem")
    check_gpus(job.gpus)
    check_priority(job.priority)
    for option in ("max_jobs", "max_fails"):
        if (most := getattr(job.spec, option)) is not None and most < 1:
            message = f"--{option.replace('_', '-')} must be at least 1."
            raise DistError("bad_option", message, field=option)
    if job.spec.every and is_array:
        hint = "Submit the array in the job: jdist submit --every 1d jdist submit --array 0-9 …"
        raise DistError("bad_option", "--every runs one job, and no array.", hint, "every")
    if job.spec.max_fails is not None and not is_array:
        hint = "Such as --array 0-9, or --param with several values."
        raise DistError("bad_option", "--max-fails needs an array.", hint, "max_fails")


def check_launch(spec: Spec, environment: dict[str, str], *, is_known: bool) -> None:
    """Refuse what would fail as soon as it starts; the program only if `is_known`."""
    if not os.path.isdir(spec.cwd):
        raise DistError("bad_option", f"The folder {spec.cwd} does not exist.", field="chdir")
    program = spec.argv[0]
    is_name = is_known and "/" not in program
    if is_name and find_program(program, environment, spec.cwd) is None:
        message = f"There is no file {program} here, and no program of that name in PATH."
        hint = ""
        if len(spec.argv) == 1 and " " in program:
            hint = f"Leave out the quotation marks: jdist submit {program}"
        raise DistError("bad_script", message, hint, field="command")
