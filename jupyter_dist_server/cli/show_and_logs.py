"""``jdist show``, ``logs``, ``wait`` and ``history``."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence

import msgspec

from ..common.errors import DistError
from ..common.units import format_bytes, write_limit
from ..jobs.file_changes import Wake
from ..jobs.job_command import job_command, log_paths
from ..jobs.log_reader import LogReader
from ..jobs.select_jobs import select, select_one
from ..jobs.store.attempt import Attempt
from ..jobs.store.job import Job
from ..jobs.store.secret_values import MASK
from ..jobs.store.slurm_formats import write_moment
from ..jobs.store.states import COMPLETED, ENDED
from ..jobs.store.store import Store
from .follow_output import follow, is_missing, read_on, show
from .printing import StoppedNotice, printable, table
from .queue import refresh


def add_show_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist show``."""
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="12, 12-14, 40_3, NAME, @")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_show(options: argparse.Namespace, store: Store) -> int:
    """Print all about jobs."""
    refresh(store)
    jobs = select(store, options.jobs)
    if options.json:
        print(_as_json(store, jobs))
        return 0
    for job in jobs:
        state = job.state + (f" ({job.reason})" if job.reason != "None" else "")
        rows = [
            ("Job", f"{job.label}  {job.name}"),
            ("State", f"{state}  {job.detail}".rstrip()),
            ("Notebook", job.spec.notebook)
            if job.spec.notebook
            else ("Command", shlex.join(job_command(job))),
            ("Folder", job.spec.cwd),
            ("Output", log_paths(job)[0]),
            ("GPUs", f"{job.gpus}  {' '.join(job.gpu_uuids)}".rstrip()),
            ("Limit", write_limit(job.limit)),
            ("Submitted", write_moment(job.submitted)),
            ("Started", write_moment(job.started)),
            ("Ended", write_moment(job.ended)),
            ("Attempt", str(job.attempt)),
        ]
        if job.spec.every:
            rows.append(("Every", job.spec.every))
        if job.spec.comment:
            rows.append(("Comment", job.spec.comment))
        if hidden := [name for name, value in store.environment(job).items() if value == MASK]:
            rows.append(("Secrets", " ".join(f"{name}={MASK}" for name in hidden)))
        if job.exit_code is not None:
            rows.append(("Exit code", str(job.exit_code)))
        if job.memory or job.cpus:
            memory = format_bytes(job.memory) if job.memory else "no limit"
            rows.append(("Cores, memory", f"{job.cpus}, {memory}"))
        if job.memory and job.gpus:
            rows.append(("", "Memory is counted, not enforced: the job has GPUs."))
        rows += [
            (f"Attempt {one.attempt}", _describe_attempt(one))
            for one in store.attempts([job.id])[job.id]
        ]
        print(*(f"{name:>14}: {printable(value)}" for name, value in rows), "", sep="\n")
    return 0


def _as_json(store: Store, jobs: list[Job]) -> str:
    attempts = msgspec.to_builtins(store.attempts([job.id for job in jobs]))
    return json.dumps([job.to_json() | {"attempts": attempts[job.id]} for job in jobs])


def add_logs_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist logs``."""
    parser.add_argument("job", metavar="JOB", help="12, 40_3, NAME, @")
    parser.add_argument("-f", "--follow", action="store_true", help="until the job has ended")
    parser.add_argument("-e", "--error", action="store_true", help="the file of standard error")
    parser.add_argument("--raw", action="store_true", help="with what progress bars wrote over")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each piece")


def run_logs(options: argparse.Namespace, store: Store) -> int:
    """Print the output of a job."""
    refresh(store)
    job = select_one(store, options.job)
    if not options.follow and not job.has_output:
        raise DistError("no_log", f"Job {job.label} has not started: {job.state}.", job.detail)
    path = log_paths(job)[options.error]
    if not options.follow and not os.path.exists(path):
        raise DistError("no_log", is_missing(job, path))
    log = LogReader(path)
    pieces = follow(store, job, log, options.error) if options.follow else read_on(log)
    # A terminal shows progress bars as they move.
    raw = options.raw or (options.follow and sys.stdout.isatty())
    show(pieces, log, raw=raw, as_json=options.json)
    return 0


def add_wait_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist wait``."""
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="12, 12-14, 40, NAME, @")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer")
    parser.add_argument("--json", action="store_true", help="as JSON: the jobs, as “show” does")


def run_wait(options: argparse.Namespace, store: Store) -> int:
    """Wait until jobs have ended; 0 if all are COMPLETED, 124 if that takes too long."""
    until = None if options.timeout is None else time.monotonic() + options.timeout
    wake, notice = Wake([store.watched]), StoppedNotice(store)
    ids: list[int] = []
    while True:
        refresh(store)
        notice.look()
        # A name, or @, means other jobs later.
        ids = ids or [job.id for job in select(store, options.jobs, whole=True)]
        jobs = store.get_all(ids)
        left = 10.0 if until is None else min(10.0, until - time.monotonic())
        has_ended = all(job.is_ended for job in jobs)
        if has_ended or left <= 0:
            if options.json:
                print(_as_json(store, jobs))
            if not has_ended:
                return 124
            return 0 if all(job.state == COMPLETED for job in jobs) else 1
        wake.wait(left)


def add_history_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist history``."""
    parser.add_argument("-n", "--last", type=int, default=50, help="this many jobs; default 50")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_history(options: argparse.Namespace, store: Store) -> int:
    """Print the jobs that have ended, the newest last."""
    if options.last < 0:
        raise DistError("bad_option", "--last cannot be negative.", "Such as -n 10.")
    refresh(store)
    marks = ", ".join("?" * len(ENDED))
    jobs = store.select(f"state IN ({marks})", *ENDED, order=f"ended DESC LIMIT {options.last}")
    jobs.reverse()
    if options.json:
        print(_as_json(store, jobs))
        return 0
    attempts = store.attempts([job.id for job in jobs])
    rows = [
        (
            job.label,
            job.name,
            job.state,
            "" if job.exit_code is None else str(job.exit_code),
            write_moment(job.ended),
            write_limit(job.ended - job.started) if job.started and job.ended else "0:00",
            str(job.gpus),
            *gpu_use(attempts[job.id]),
            job.detail,
        )
        for job in jobs
    ]
    head = ["JOBID", "NAME", "STATE", "EXIT", "ENDED", "TIME", "GPUS"]
    head += ["GPU-HOURS", "LOAD", "MEMORY", "DETAIL"]
    print(table(head, rows))
    return 0


def gpu_use(attempts: Sequence[Attempt]) -> tuple[str, str, str]:
    """Return GPU-hours, and the peaks of load and memory of a GPU, over all attempts."""
    hours = sum(
        (one.ended - one.started) * (one.gpus or 0) / 3600
        for one in attempts
        if one.started and one.ended
    )
    seen = [gpu for one in attempts for gpu in one.usage.values()]
    loads = [gpu.load_peak for gpu in seen if gpu.load_peak is not None]
    peak = max((gpu.memory_peak for gpu in seen), default=0)
    memory = format_bytes(peak) if peak else ""
    return f"{hours:.2f}" if hours else "", f"{max(loads)} %" if loads else "", memory


def _describe_attempt(attempt: Attempt) -> str:
    parts = [attempt.state or "RUNNING"]
    if attempt.started and attempt.ended:
        took = write_limit(attempt.ended - attempt.started)
        parts.append(f"from {write_moment(attempt.started)}, {took}")
    if seen := list(attempt.usage.values()):
        hours, peak, memory = gpu_use([attempt])
        samples = sum(gpu.samples for gpu in seen)
        mean = sum(gpu.load_sum for gpu in seen) / samples
        load = f"GPU load {mean:.0f} % (peak {peak})" if peak else "GPU load unknown"
        parts += [load, *([f"GPU memory up to {memory}"] if memory else [])]
        parts += [f"{hours} GPU-hours"] if hours else []
    return ", ".join(parts)
