"""The words of gflow, as of August 2026."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from ...common.errors import DistError
from ...common.units import format_bytes, write_limit
from ...jobs.schedule.overview import Row
from ...jobs.select_jobs import select
from ...jobs.store.states import LETTERS, PENDING
from ...jobs.store.store import Store
from ...jobs.submit.job_options import Parser
from ..printing import table
from ..queue import add_queue_options, count_free, run_queue, write_time
from .foreign_options import Options, notice, run_jdist, untranslated
from .past_moments import read_past
from .submit_as import submit_as

_FLAGS = "-h --help -V --version --shared --no-auto-cancel --auto-close --dry-run"
_GQUEUE = """
-u,--user,--users= -n,--limit= -a,--all -c,--completed --since= -r,--sort= -s,--states= --help,-h
-j,--jobs,--job= -N,--names= -P,--project= -f,--format= -g,--group -t,--tree -T,--tmux -o,--output=
-w,--watch --interval= -V,--version
"""
_NODES = "NODELIST(REASON)"
_USUAL = f"JOBID,NAME,ST,NODES,{_NODES}"
_COLUMNS: dict[str, Callable[[Row], str]] = {
    "JOBID": lambda row: row.id or "-",
    "NAME": lambda row: row.name,
    "ST": lambda row: LETTERS.get(row.state, row.state),
    "TIME": lambda row: write_time(row),
    "NODES": lambda row: str(row.gpus),
    "USER": lambda row: row.user,
    "PRIORITY": lambda row: str(row.job.priority) if row.job else "-",
    "TIMELIMIT": lambda row: write_limit(row.limit),
    "MEMORY": lambda row: format_bytes(row.job.memory) if row.job and row.job.memory else "-",
    "PROJECT": lambda row: (row.job.spec.comment if row.job else "") or "-",
}
_STATES = {
    "queued": "PD",
    "hold": "PD",
    "running": "CF,R,CG",
    "finished": "CD",
    "failed": "F,OOM,NF",
    "cancelled": "CA",
    "timeout": "TO",
}
_ORDERS: dict[str, Callable[[Row], object]] = {
    "id": lambda row: (row.job is None, row.job.id if row.job else 0),
    "state": lambda row: row.state,
    "time": lambda row: row.since or 0.0,
    "name": lambda row: row.name,
    "gpus": lambda row: row.gpus,
    "priority": lambda row: -row.job.priority if row.job else 0,
}


def gbatch(words: list[str], store: Store) -> int:
    """Queue a job; its output goes where gflow puts it."""
    if words[:1] == ["new"]:
        raise untranslated("gbatch new", "A script begins with lines such as # GFLOW --gpus 1.")
    data = os.environ.get("XDG_DATA_HOME") or Path("~/.local/share").expanduser()
    logs = Path(data, "gflow", "logs")
    logs.mkdir(parents=True, exist_ok=True)
    return submit_as("gbatch", "GFLOW", _FLAGS, words, store, ours=["--output", f"{logs}/%j.log"])


def gqueue(words: list[str], store: Store) -> int:
    """List jobs in the columns of gflow: nodes are GPUs."""
    given = Options("gqueue", _GQUEUE, words)
    given.answer("queue", store)
    if given.rest:
        raise untranslated(f"gqueue {given.rest[0]}")
    columns = _chosen(given.take("-f") or _USUAL, [*_COLUMNS, "NODELIST", _NODES], "column")
    states = [one.lower() for one in (given.take("-s") or "").split(",") if one]
    if given.has("-c"):
        states = ["finished", "failed", "cancelled", "timeout"]
    asked = [f"--states={','.join(_STATES.get(one, one) for one in states)}"] if states else []
    if given.has("-a"):
        asked = ["--states=all"]
    for theirs, ours in {"-u": "--user", "-j": "--jobs", "-N": "--name"}.items():
        if (value := given.take(theirs)) is not None:
            asked.append(f"{ours}={value}")
    if given.has("-w"):
        asked.append("--watch")
    output = given.take("-o") or "table"
    if output == "json":
        asked.append("--json")
        notice("The JSON is that of jdist queue.")
    elif output != "table":
        raise untranslated(f"gqueue --output {output}", "Use jdist queue --json.")
    project, since, limit = given.take("-P"), given.take("--since"), given.take("-n") or "0"
    if not limit.removeprefix("-").isdecimal():
        raise DistError("bad_option", f"gqueue --limit {limit} is not a number.")
    (order,) = _chosen((given.take("-r") or "id").lower(), [*_ORDERS], "order")
    first = read_past(since, time.time()) if since else 0.0
    given.name_others()

    def show(rows: list[Row]) -> str:
        found = [
            row
            for row in rows
            if (project is None or (row.job and row.job.spec.comment == project))
            and (not since or (row.job and row.job.submitted >= first))
            and (not {"queued", "hold"} & {*states} or row.state != PENDING or _wait(row) in states)
        ]
        found.sort(key=_ORDERS[order])  # type: ignore[arg-type]
        count = int(limit)
        found = found[:count] if count > 0 else found[count:]
        free = count_free() if any(row.reason == "Resources" for row in found) else 0
        cells = {name: lambda row: _place(row, free) for name in ("NODELIST", _NODES)} | _COLUMNS
        head = [_NODES if name == "NODELIST" else name for name in columns]
        return table(head, [[cells[name](row) for name in columns] for row in found]) + "\n"

    parser = Parser(prog="gqueue")
    add_queue_options(parser)
    return run_queue(parser.parse_args(asked), store, show)


def _wait(row: Row) -> str:
    return "hold" if row.job and row.job.held else "queued"


def _place(row: Row, free: int) -> str:
    """Return the GPUs of a job, or why it waits."""
    if row.state != PENDING:
        return ",".join(row.gpu_uuids)
    if row.reason == "Resources" and 0 < free < row.gpus:
        return f"(Resources: Need {row.gpus} GPUs, only {free} available)"
    return f"({row.reason})"


def _chosen(text: str, known: list[str], what: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in known]:
        raise DistError("bad_option", f"There is no {what} {unknown[0]}.", f"Use {known}.")
    return names


def ginfo(words: list[str], store: Store) -> int:
    """Show the GPUs."""
    given = Options("ginfo", _ALWAYS, words)
    given.answer("info", store)
    if given.rest not in ([], ["info"]):
        raise untranslated(f"ginfo {given.rest[0]}")
    given.name_others()
    return run_jdist("info", ["--long"], store)


def gcancel(words: list[str], store: Store) -> int:
    """Cancel jobs."""
    given = Options("gcancel", "--dry-run --help,-h -V,--version", words)
    given.answer("cancel", store)
    is_dry = given.has("--dry-run")
    given.name_others()
    jobs = _ids(given.rest)
    if not is_dry:
        return run_jdist("cancel", jobs, store)
    for job in select(store, jobs):
        told = f"is {job.state}" if job.is_ended else "would be cancelled"
        print(f"Job {job.label} {told}.")
    return 0


def _ids(words: list[str]) -> list[str]:
    return [one for word in words for one in word.split(",") if one]


_GJOB = {
    "show": "",
    "log": "-f,--first= -l,--last=",
    "hold": "",
    "release": "--at=",
    "redo": """-g,--gpus= -p,--priority= -d,--depends-on= -t,--time= -m,--memory=
        --gpu-memory,--max-gpu-mem= -e,--conda-env= --clear-deps --cascade""",
    "update": """-c,--command= -s,--script= -g,--gpus= -e,--conda-env= --clear-conda-env
        -p,--priority= -t,--time-limit= --clear-time-limit -m,--memory-limit= --clear-memory-limit
        --gpu-memory,--max-gpu-mem= --clear-gpu-memory-limit -d,--depends-on= --depends-on-all=
        --depends-on-any= --auto-cancel-on-dep-failure --no-auto-cancel-on-dep-failure
        --max-concurrent= --clear-max-concurrent --max-retries= --clear-max-retries --param=""",
}
_ALWAYS = "-v,--verbose -q,--quiet --help,-h -V,--version"
_SHORT = {"s": "show", "l": "log", "h": "hold", "r": "release", "u": "update"}


def gjob(words: list[str], store: Store) -> int:
    """Show and change jobs."""
    word = words[0] if words else "--help"
    part = _SHORT.get(word, word)
    if part in ("attach", "a", "close-sessions", "close"):
        raise untranslated(f"gjob {word}", "Jobs have no tmux session. Use jdist logs -f JOB.")
    if part not in _GJOB:
        raise untranslated(f"gjob {word}", f"It knows {', '.join(_GJOB)}.")
    given = Options(f"gjob {part}", f"{_GJOB[part]} {_ALWAYS}", words[1:])
    given.answer({"log": "logs", "redo": "submit"}.get(part, part), store)
    jobs = _ids(given.rest)
    if part == "redo":
        given.refuse("--clear-deps", "--cascade")
        names = {"-g": "--gpus", "-p": "--priority", "-d": "--depends-on", "-t": "--time"}
        names |= {"-m": "--memory", "-e": "--conda-env", "--gpu-memory": "--gpu-memory"}
        asked = [f"{name}={value}" for short, name in names.items() if (value := given.take(short))]
        given.name_others()
        return submit_as("gjob redo", "GFLOW", "", asked, store, ours=["--like", *jobs])
    changes: list[str] = []
    if part == "update":
        if given.has("--clear-time-limit"):
            changes = ["--time=UNLIMITED"]
        for short, name in {"-g": "--gpus", "-p": "--priority", "-t": "--time"}.items():
            if (value := given.take(short)) is not None:
                changes.append(f"{name}={value}")
        given.refuse(*(group.split(",")[0].rstrip("=") for group in _GJOB[part].split()))
    given.refuse("--at")
    given.name_others()
    return run_jdist({"log": "logs"}.get(part, part), [*changes, *jobs], store)


def gflowd(words: list[str], store: Store) -> int:
    """Say that there is no daemon."""
    if words[:1] == ["service"] and words[1:2] in (["install"], ["uninstall"]):
        action = {"uninstall": "remove"}.get(words[1], words[1])
        return run_jdist("service", [action], store)
    part = " ".join(["gflowd", *words])
    if words[:1] in (["stop"], ["down"]):
        print(f"{part}: the queue has no daemon to stop. “jdist cancel --all” cancels your jobs.")
    else:
        print(f"{part}: the queue needs no daemon. Jobs start by themselves.")
    return 0
