"""``jdist submit`` and ``jdist run``: from options to jobs."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from ..common.errors import DistError
from ..gpus.gpu_state import read_gpu_state
from ..jobs.job import Job, Spec
from ..jobs.states import COMPLETED
from ..jobs.store import Store
from ..jobs.submission import (
    check_parameters,
    commands,
    read_array,
    read_dependencies,
    submit,
    sweep,
)
from ..jobs.words import read_limit, read_moment, read_size
from .change import cancel_jobs
from .directives import read_directives
from .follow import follow
from .parser import Parser, add_job_options

_NOT_EXPORTED = ("JPY_", "JUPYTER_TOKEN", "JUPYTERHUB_API_TOKEN", "JUPYTER_DIST_JOB")
"""Variables of whoever submits that are not for a job."""
_REQUEUES = 3
"""How often ``--requeue`` starts a job again."""


def add_submit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist submit``."""
    add_job_options(parser)
    parser.add_argument("--parsable", action="store_true", help="print the id alone")
    parser.add_argument("--dry-run", action="store_true", help="check and print; queue nothing")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command, or a script")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist run``."""
    add_job_options(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command, or a script")


def run_submit(options: argparse.Namespace, store: Store) -> int:
    """Queue jobs, and say which."""
    job, rows, tasks, dependencies, environment = _read(options, store)
    if options.dry_run:
        check_parameters(job.spec.argv, rows)
        count = max(len(rows), len(tasks), 1)
        print(f"Would submit {count} job{'s' * (count > 1)}, {job.gpus} GPUs each:")
        print(*(f"  {command}" for command in commands(job, rows)), sep="\n")
        if len(rows) > 3:
            print("  …")
        return 0
    jobs = submit(
        store,
        job,
        rows=rows,
        tasks=tasks,
        environment=environment,
        dependencies=dependencies,
        token=options.key and f"key {options.key}",
    )
    first = jobs[0]
    if options.parsable:
        print(first.id)
    elif len(jobs) == 1:
        print(f"Submitted job {first.label}.")
    else:
        print(f"Submitted jobs {first.label} … {jobs[-1].label}.")
    return 0


def run_run(options: argparse.Namespace, store: Store) -> int:
    """Queue one job, show what it prints, and end as it does; Ctrl+C cancels it."""
    job, rows, tasks, dependencies, environment = _read(options, store)
    if tasks or len(rows) > 1:
        raise DistError("bad_option", "jdist run starts one job.", "Use jdist submit for several.")
    queued = submit(store, job, rows=rows, environment=environment, dependencies=dependencies)[0]
    print(f"Job {queued.label} is queued.", file=sys.stderr)

    def cancel(number: int, frame: object) -> None:
        cancel_jobs(store, [store.get(queued.id)])

    signal.signal(signal.SIGINT, cancel)
    ended = follow(store, queued, sys.stdout.buffer)
    if ended.state == COMPLETED:
        return 0
    print(f"Job {ended.label} is {ended.state}. {ended.detail}", file=sys.stderr)
    return 128 + ended.exit_signal if ended.exit_signal else ended.exit_code or 1


def _read(
    options: argparse.Namespace, store: Store
) -> tuple[Job, list[dict[str, str]], list[int], list[tuple[int, str]], dict[str, str]]:
    words = (
        [word for word in options.command if word != "--"]
        if options.command[:1] == ["--"]
        else (options.command)
    )
    if not words:
        raise DistError(
            "bad_option", "There is no command.", "Such as jdist submit python train.py"
        )
    argv = list(words)
    script = Path(argv[0])
    if script.is_file() and not _is_binary(script):
        given, unused = read_directives(script)
        for option in unused:
            print(f"jdist: #SBATCH {option} has no meaning on one machine.", file=sys.stderr)
        parser = Parser(prog=f"{script}")
        add_job_options(parser)
        for name, value in vars(parser.parse_args(given)).items():
            if getattr(options, name) is None:
                setattr(options, name, value)
        if not options.torchrun:
            argv[0] = _keep_script(store, script)
    elif "/" in argv[0] and not script.exists():
        raise DistError("bad_script", f"{argv[0]} does not exist.")
    rows = sweep(options.param or [])
    tasks, array_limit = read_array(options.array) if options.array else ([], None)
    dependencies, singleton = read_dependencies(options.dependency or "", store)
    cwd = os.path.abspath(options.chdir or os.getcwd())
    umask = os.umask(0)
    os.umask(umask)
    is_array = bool(tasks) or len(rows) > 1
    spec = Spec(
        argv=argv,
        cwd=cwd,
        umask=umask,
        setup=_setup(options),
        output=options.output or ("jdist-%A_%a.out" if is_array else "jdist-%j.out"),
        error=options.error,
        append=options.open_mode == "append",
        torchrun=bool(options.torchrun),
        signal=_signal(options.signal) if options.signal else None,
        requeue=_REQUEUES if options.requeue else 0,
        max_jobs=options.max_jobs,
        array_limit=array_limit,
        singleton=singleton,
        comment=options.comment or "",
    )
    gpus, gpu_ids = _gpus(options)
    share = read_size(options.gpu_memory) if options.gpu_memory else None
    if bool(options.share) != (share is not None):
        raise DistError("bad_option", "--share and --gpu-memory belong together.")
    job = Job(
        params={},
        name=options.name or os.path.basename(words[0]),
        spec=spec,
        priority=options.priority or 0,
        begin=read_moment(options.begin, time.time()) if options.begin else None,
        held=bool(options.hold),
        gpus=gpus,
        gpu_ids=gpu_ids,
        share=share,
        # Cores are counted for jobs that name them, or have nothing else.
        cpus=options.cpus if options.cpus is not None else 0 if gpus else 1,
        memory=read_size(options.mem) if options.mem else 0,
        limit=read_limit(options.time) if options.time else None,
    )
    _check(job)
    return job, rows, tasks, dependencies, _environment(options)


def _check(job: Job) -> None:
    if job.gpus < 0 or job.cpus < 0:
        raise DistError("bad_option", "A number of GPUs or cores cannot be negative.")
    if job.cpus > (cores := os.cpu_count() or 1):
        raise DistError("too_large", f"The job needs {job.cpus} cores, and there are {cores}.")


def _gpus(options: argparse.Namespace) -> tuple[int, tuple[str, ...]]:
    """Return how many GPUs are asked for, and the UUIDs of those that will do."""
    if not options.gpus and not options.gpu_ids:
        return 0, ()
    there = asyncio.run(read_gpu_state()).inventory
    gpus = list(there.gpus)
    if options.gpu_ids:
        named = [text.strip() for text in options.gpu_ids.split(",")]
        gpus = [gpu for gpu in there.gpus if {gpu.uuid, gpu.label, str(gpu.index)} & set(named)]
        known = {name for gpu in there.gpus for name in (gpu.uuid, gpu.label, str(gpu.index))}
        if missing := [name for name in named if name not in known]:
            existing = ", ".join(gpu.label for gpu in there.gpus) or there.reason
            raise DistError(
                "unknown_gpu", f"There is no GPU {missing[0]}.", f"There are: {existing}"
            )
    if options.min_gpu_memory:
        least = read_size(options.min_gpu_memory, "G")
        gpus = [gpu for gpu in gpus if gpu.memory_total >= least]
    count = options.gpus if options.gpus is not None else len(gpus)
    if count > len(gpus):
        why = there.reason or f"there are {len(gpus)} such GPUs"
        raise DistError("too_large", f"{count} GPUs were asked for, and {why}.")
    narrowed = len(gpus) < len(there.gpus)
    return count, tuple(gpu.uuid for gpu in gpus) if narrowed else ()


def _setup(options: argparse.Namespace) -> list[str]:
    lines = []
    if options.module:
        lines.append("module load " + " ".join(map(shlex.quote, options.module)))
    if options.conda:
        lines += ['eval "$(conda shell.bash hook)"', f"conda activate {shlex.quote(options.conda)}"]
    if options.venv:
        lines.append(f". {shlex.quote(os.path.abspath(options.venv))}/bin/activate")
    return lines + (options.setup or [])


def _signal(text: str) -> tuple[int, float]:
    name, _, seconds = text.removeprefix("B:").partition("@")
    known = {number.name.removeprefix("SIG"): number.value for number in signal.Signals}
    number = int(name) if name.isdigit() else known.get(name.upper().removeprefix("SIG"))
    if number is None or (seconds and not seconds.isdigit()):
        raise DistError("bad_option", f"“{text}” is not a signal.", "Such as USR1@120.")
    return number, float(seconds or 60)


def _environment(options: argparse.Namespace) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_EXPORTED)}
    export = (options.export or "ALL").split(",")
    least = ("PATH", "HOME", "USER", "LANG", "SHELL")
    chosen = {name: kept[name] for name in kept if "ALL" in export or name in least}
    for text in [*export, *(options.env or [])]:
        name, equals, value = text.partition("=")
        if equals:
            chosen[name] = value
        elif name in kept:
            chosen[name] = kept[name]
        elif text not in ("ALL", "NONE"):
            raise DistError("bad_option", f"There is no variable {name}.", "Use K=V to set one.")
    return chosen


def _is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" in file.read(1024)


def _keep_script(store: Store, script: Path) -> str:
    """Copy a script, so that what runs is what was submitted; return the copy's path."""
    body = script.read_bytes()
    if not body.startswith(b"#!"):
        shell = b"#!/usr/bin/env python\n" if script.suffix == ".py" else b"#!/bin/bash\n"
        body = shell + body
    folder = store.folder / "scripts"
    folder.mkdir(mode=0o700, exist_ok=True)
    copy = folder / f"{time.time_ns()}-{script.name}"
    copy.write_bytes(body)
    copy.chmod(0o700)
    return str(copy)
