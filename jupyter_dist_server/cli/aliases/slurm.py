"""The words of Slurm, 22.05: ``sbatch``, ``squeue``, ``scancel`` and ``sinfo``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ...common.errors import DistError
from ...common.users import name_of
from ...jobs.schedule.overview import Row
from ...jobs.select_jobs import select
from ...jobs.store.job import Job
from ...jobs.store.states import ENDED
from ...jobs.store.store import Store
from ...jobs.submit.job_options import Parser
from ..queue import add_queue_options, read_states, run_queue
from .foreign_options import Options, run_jdist, untranslated
from .sacct import sacct
from .scontrol import scontrol
from .slurm_columns import read_letters, read_names, write
from .submit_as import submit_as

__all__ = ["sacct", "sbatch", "scancel", "scontrol", "sinfo", "squeue"]

_FLAGS = """
-h --help --usage -H --hold -k --no-kill -O --overcommit -Q --quiet -s --oversubscribe -v --verbose
-V --version -W --wait --contiguous --exclusive --get-user-env --ignore-pbs --nice --no-requeue
--parsable --propagate --reboot --requeue --spread-job --test-only --use-min-nodes
"""
_SQUEUE = """
-A,--account= -a,--all --array-unique --federation -h,--noheader --hide -i,--iterate= -j,--jobs=
--json --local -L,--licenses= -l,--long -M,--clusters= --me -n,--name= --noconvert -o,--format=
-O,--Format= -p,--partition= -q,--qos= -R,--reservation= -r,--array --sibling -s,--step= -S,--sort=
--start -t,--states= -u,--user,--users= -v,--verbose -V,--version -w,--nodelist= --yaml
--help,--usage
"""
_USUAL = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
_AS_LONG = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
_STARTS = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R"
_SCANCEL = """
-A,--account= -b,--batch -f,--full -H,--hurry -i,--interactive -M,--clusters= --me
-n,--name,--jobname= -p,--partition= -Q,--quiet -q,--qos= -R,--reservation= --sibling=
-s,--signal= -t,--state=
-u,--user= -V,--version -v,--verbose -w,--nodelist= --wckey= --help,--usage
"""
_SINFO = """
-a,--all -d,--dead -e,--exact --federation -h,--noheader --hide -i,--iterate= --json --local
-l,--long -M,--clusters= -n,--nodes= --noconvert -N,--Node -o,--format= -O,--Format=
-p,--partition= -r,--responding -R,--list-reasons -s,--summarize -S,--sort= -t,--states=
-T,--reservation -v,--verbose -V,--version --yaml --help,--usage
"""
_TASKS = re.compile(r"(\d+)_\[(.*)\]")


def sbatch(words: list[str], store: Store) -> int:
    """Queue a script."""
    return submit_as("sbatch", "SBATCH", _FLAGS, words, store, files="slurm")


def squeue(words: list[str], store: Store) -> int:
    """List what waits and runs, of all users, in a format of Slurm."""
    given = Options("squeue", _SQUEUE, words)
    given.answer("queue", store)
    given.refuse("--json", "--yaml")
    if given.rest:
        raise untranslated(f"squeue {given.rest[0]}", "Such as squeue -j 12.")
    asked = ["--start", "--states=PD"] if (is_start := given.has("--start")) else []
    asked += ["--array"] if given.has("-r") else []
    asked += ["--watch"] if given.has("-i") else []
    user = given.take("-u") or ("" if given.has("--me") else "all")
    asked += [f"--user={user}"] if user not in ("", name_of(os.getuid())) else []
    for theirs, ours in {"-j": "--jobs", "-n": "--name", "-t": "--states"}.items():
        if (value := given.take(theirs)) is not None:
            asked.append(f"{ours}={value}")
    is_long, heading = given.has("-l"), not given.has("-h")
    letters, names = given.take("-o"), given.take("-O")
    usual = _STARTS if is_start else _AS_LONG if is_long else os.environ.get("SQUEUE_FORMAT")
    chosen = read_names(names) if names else read_letters(letters or usual or _USUAL)
    given.name_others()

    def show(rows: list[Row]) -> str:
        return write(chosen, rows, heading=heading)

    parser = Parser(prog="squeue")
    add_queue_options(parser)
    return run_queue(parser.parse_args(asked), store, show)


def scancel(words: list[str], store: Store) -> int:
    """Cancel jobs, or send them a signal."""
    given = Options("scancel", _SCANCEL, words)
    given.answer("cancel", store)
    # Without these, it would cancel more jobs.
    given.refuse("-A", "-i", "-M", "-p", "-q", "-R", "--sibling", "-w", "--wckey")
    number = given.take("-s")
    asked = [] if number is None else [f"--signal={number}"]
    labels = _labels(given.rest)
    names, states, user = given.take("-n"), given.take("-t"), given.take("-u")
    is_filtered = (names, states, user) != (None, None, None) or given.has("--me")
    if user not in (None, name_of(os.getuid()), str(os.getuid())):
        raise DistError("bad_option", f"The jobs of {user} are not yours to cancel.")
    given.has("-f")  # all processes get a signal
    given.name_others()
    if is_filtered:
        jobs = select(store, labels) if labels else store.select_many(f"state NOT IN {ENDED}")
        chosen = read_states(states) if states else None
        labels = [job.label for job in jobs if _is_one(job, names, chosen)]
        if not labels:
            return 0
    return run_jdist("cancel", [*asked, *labels], store)


def _is_one(job: Job, names: str | None, states: set[str] | None) -> bool:
    is_named = names is None or job.name in names.split(",")
    return is_named and (states is None or job.state in states)


def _labels(words: Sequence[str]) -> list[str]:
    """Return labels of jobs: ``12_[1-3,5]`` has two."""
    found = []
    for word in words:
        if match := _TASKS.fullmatch(word):
            found += [f"{match[1]}_{tasks}" for tasks in match[2].split(",")]
        else:
            found += word.split(",")
    if steps := [one for one in found if re.fullmatch(r"\d+(_\d+)?\..*", one)]:
        raise untranslated(steps[0], "Jobs have no steps here.")
    return [one.removesuffix("_*") for one in found]


def sinfo(words: list[str], store: Store) -> int:
    """Show the GPUs of this machine."""
    given = Options("sinfo", _SINFO, words)
    given.answer("info", store)
    given.refuse("-o", "-O", "--json", "--yaml")
    asked = ["--long"] if given.has("-l") else []
    given.name_others()
    return run_jdist("info", asked, store)
