"""``scontrol``: show, hold, release, requeue and update jobs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ...common.units import write_limit
from ...common.users import name_of
from ...jobs.job_command import job_command, log_paths
from ...jobs.schedule.may_start import write_dependency
from ...jobs.select_jobs import select
from ...jobs.store.job import Job
from ...jobs.store.states import ENDED, PENDING
from ...jobs.store.store import Store
from ..printing import printable
from ..queue import refresh
from .foreign_options import Options, run_jdist, untranslated
from .slurm_columns import NONE, PARTITION, elapsed, exit_code, gres, moment

_KNOWN = """
-a,--all -d,--details --federation -F,--future --help,-h --hide --local -M,--cluster= -o,--oneliner
-Q,--quiet --sibling -u,--uid= -v,--verbose -V,--version
"""
_SAME = {
    "hold": "hold",
    "holdu": "hold",
    "uhold": "hold",
    "release": "release",
    "requeue": "requeue",
}
_CHANGES = {
    "timelimit": "--time",
    "priority": "--priority",
    "jobname": "--job-name",
    "name": "--job-name",
    "comment": "--comment",
}
_ID = re.compile(r"(?:job|jobid|name)=", re.IGNORECASE)


def scontrol(words: list[str], store: Store) -> int:
    """Do what a command of ``scontrol`` says, if it is about jobs."""
    given = Options("scontrol", _KNOWN, words)
    given.answer("update", store)
    is_one_line = given.has("-o")
    given.name_others()
    command, *rest = [word.lower() for word in given.rest[:1]] + given.rest[1:] or ["help"]
    if command == "show":
        return _show(rest, store, is_one_line=is_one_line)
    if command == "ping":
        print("The queue needs no daemon.")
        return 0
    if command == "update":
        return _update(rest, store)
    if command not in _SAME:
        raise untranslated(f"scontrol {command}")
    return run_jdist(_SAME[command], _ids(rest), store)


def _ids(words: Sequence[str]) -> list[str]:
    return [one for word in words for one in _ID.sub("", word).split(",") if one]


def _update(words: Sequence[str], store: Store) -> int:
    jobs, changes = [], []
    for word in words:
        name, equals, value = word.partition("=")
        if name.lower() in ("jobid", "job"):
            jobs = _ids([value])
        elif name.lower() == "nice" and equals:
            changes.append(f"--priority={-int(value)}" if value.lstrip("-").isdecimal() else word)
        elif name.lower() in ("gres", "trespernode") and re.search(r"gpu\b.*?:?(\d+)$", value):
            changes.append(f"--gpus={value.rpartition(':')[2]}")
        elif name.lower() in _CHANGES and not value.startswith(("+", "-=", "+=")):
            changes.append(f"{_CHANGES[name.lower()]}={value}")
        else:
            hint = "It changes TimeLimit, Priority, Nice, JobName, Comment and Gres of a JobId."
            raise untranslated(f"scontrol update {word}", hint)
    return run_jdist("update", [*changes, *jobs], store)


def _show(words: Sequence[str], store: Store, *, is_one_line: bool) -> int:
    entity, _, label = words[0].lower().partition("=") if words else ("", "", "")
    if entity not in ("job", "jobs", "jobid"):
        what = f"scontrol show {entity}".strip()
        raise untranslated(what, "jdist info shows the GPUs of this machine.")
    refresh(store)
    labels = _ids([label, *words[1:]])
    jobs = select(store, labels) if labels else store.select_many(f"state NOT IN {ENDED}")
    for job in jobs:
        lines = filter(None, _told(job, store))
        joined = [" ".join(f"{name}={printable(value)}" for name, value in line) for line in lines]
        print(" ".join(joined) if is_one_line else "\n   ".join(joined) + "\n")
    return 0


def _told(job: Job, store: Store) -> list[list[tuple[str, str]]]:
    upon = [write_dependency(kind, other) for other, kind in store.dependencies_of(job.id)]
    output, error = log_paths(job)
    array = [("ArrayJobId", str(job.array)), ("ArrayTaskId", str(job.task))]
    started = moment(job.started or (job.begin if job.state == PENDING else None), "Unknown")
    host = os.uname().nodename
    return [
        [("JobId", str(job.id)), *(array if job.array is not None else []), ("JobName", job.name)],
        [("UserId", f"{name_of(os.getuid())}({os.getuid()})"), ("GroupId", str(os.getgid()))],
        [("Priority", str(job.priority)), ("Account", NONE), ("QOS", NONE)],
        [("JobState", job.state), ("Reason", job.reason), ("Dependency", ",".join(upon) or NONE)],
        [("Requeue", str(int(job.spec.requeue > 0))), ("Restarts", str(job.attempt - 1))],
        [("BatchFlag", "1"), ("ExitCode", exit_code(job))],
        [("RunTime", elapsed(job)), ("TimeLimit", write_limit(job.limit))],
        [("SubmitTime", moment(job.submitted)), ("EligibleTime", moment(job.queued))],
        [("StartTime", started), ("EndTime", moment(job.ended or job.ends_by, "Unknown"))],
        [("Partition", PARTITION), ("NodeList", NONE if job.state == PENDING else host)],
        [("NumNodes", "1"), ("NumCPUs", str(max(1, job.cpus)))],
        [("MinMemoryNode", f"{job.memory >> 20}M" if job.memory else "0")],
        [("TresPerNode", gres(job.gpus))] if job.gpus else [],
        [("Comment", job.spec.comment)] if job.spec.comment else [],
        [("Command", " ".join(job_command(job)))],
        [("WorkDir", job.spec.cwd)],
        [("StdErr", error)],
        [("StdOut", output)],
    ]
