"""Options of ``jdist submit`` in the environment: below the command line, above a script's own.

See the input environment variables in https://slurm.schedmd.com/sbatch.html. ``JDIST_TIMELIMIT``
is the same as ``SBATCH_TIMELIMIT``, and stronger; so are the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..variables import JOB
from .job_options import Parser, add_job_options
from .job_request import JobRequest
from .script_directives import Directive, our_options

_OPTIONS = {
    "ARRAY_INX": "--array",
    "BEGIN": "--begin",
    "COMMENT": "--comment",
    "CPUS_PER_TASK": "--cpus-per-task",
    "DEPENDENCY": "--dependency",
    "ERROR": "--error",
    "EXPORT": "--export",
    "GPUS": "--gpus",
    "GPUS_PER_NODE": "--gpus-per-node",
    "GPUS_PER_TASK": "--gpus-per-task",
    "GRES": "--gres",
    "JOB_NAME": "--job-name",
    "MEM_PER_NODE": "--mem",
    "NTASKS": "--ntasks",
    "OPEN_MODE": "--open-mode",
    "OUTPUT": "--output",
    "PRIORITY": "--priority",
    "SIGNAL": "--signal",
    "TIMELIMIT": "--time",
}
_FLAGS = {"REQUEUE": "--requeue", "NO_REQUEUE": "--no-requeue"}


def complete_from(request: JobRequest, environment: Mapping[str, str]) -> list[str]:
    """Take what a request does not say from variables; return a sentence on each not used."""
    if JOB in environment:  # there, JDIST_GPUS and others tell of the job
        return []
    given: dict[str, str] = {}
    notices = []
    for prefix in ("SBATCH_", "JDIST_"):
        for name in sorted(name for name in environment if name.startswith(prefix)):
            rest = name.removeprefix(prefix)
            if rest in _OPTIONS or rest in _FLAGS:
                given[rest] = name
            elif prefix == "SBATCH_":
                notices.append(f"{name} is not used.")
    found = [
        Directive(name, "SBATCH", _FLAGS[rest], [])
        if rest in _FLAGS
        else Directive(name, "SBATCH", _OPTIONS[rest], [environment[name]])
        for rest, name in given.items()
    ]
    parser = Parser(add_help=False)
    add_job_options(parser)
    request.complete(parser.parse_args(our_options(found, notices)))
    return notices
