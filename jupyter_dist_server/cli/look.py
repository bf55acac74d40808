"""``jdist queue``, ``show``, ``logs``, ``wait``, ``history`` and ``info``."""

from __future__ import annotations

import argparse
import asyncio
import json
import shlex
import sys
import time

from ..common.errors import DistError
from ..common.units import format_bytes
from ..gpus.gpu_state import read_gpu_state
from ..jobs.command import job_command, log_paths
from ..jobs.eligible import obstacles
from ..jobs.job import Job
from ..jobs.lease import holders
from ..jobs.plan import Expected, forecast
from ..jobs.recovery import recover
from ..jobs.situation import situation
from ..jobs.start_dispatcher import ensure
from ..jobs.states import COMPLETED, ENDED, LETTERS, PENDING
from ..jobs.store import Store
from ..jobs.submission import select
from ..jobs.wake import Wake
from ..jobs.words import write_limit, write_moment
from .follow import follow, read_from
from .table import table


def _refresh(store: Store) -> None:
    """Tell the truth about jobs whose runner was killed while no dispatcher was there."""
    recover(store)
    ensure(store)


def add_queue_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist queue``."""
    parser.add_argument("-t", "--states", help="only these: PD,R")
    parser.add_argument("-n", "--name", help="only jobs of this name")
    parser.add_argument("--start", action="store_true", help="also when jobs are expected to start")
    parser.add_argument("-w", "--watch", action="store_true", help="again whenever it changes")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_queue(options: argparse.Namespace, store: Store) -> int:
    """Print the jobs that wait or run."""
    wake = Wake([store.watched]) if options.watch else None
    while True:
        _refresh(store)
        jobs = _queued(options, store)
        if options.json:
            print(json.dumps([job.to_json() for job in jobs]))
        else:
            print(_queue_table(jobs, _expected(store) if options.start else None))
        if wake is None:
            return 0
        sys.stdout.flush()
        wake.wait(10.0)
        print()


def _queued(options: argparse.Namespace, store: Store) -> list[Job]:
    jobs = store.active() + store.pending()
    if options.states:
        wanted = {text.strip().upper() for text in options.states.split(",")}
        jobs = [job for job in jobs if {job.state, LETTERS[job.state]} & wanted]
    return [job for job in jobs if options.name in (None, job.name)]


def _expected(store: Store) -> dict[str, Expected]:
    """Return when the jobs that wait are expected to start, by id."""
    now, pending, active = time.time(), store.pending(), store.active()
    found = obstacles(pending, active, store.dependencies(), now)
    eligible = [job for job in pending if job.id not in found]
    gpus = asyncio.run(read_gpu_state()) if any(job.gpus for job in eligible) else None
    there = situation(eligible, active, gpus, {})
    return forecast(there.machine, there.held, there.ordered, now)


def _queue_table(jobs: list[Job], expected: dict[str, Expected] | None) -> str:
    now = time.time()
    head = ["JOBID", "NAME", "ST", "TIME", "LIMIT", "GPUS", "WHERE(REASON)"]
    rows = []
    for job in jobs:
        time_used = (
            write_limit(now - job.started) if job.started and job.state != PENDING else "0:00"
        )
        row = [job.label, job.name, LETTERS[job.state], time_used, write_limit(job.limit)]
        row += [str(job.gpus), _where(job)]
        if expected is not None:
            row.insert(-1, _start(expected.get(str(job.id))) if job.state == PENDING else "")
        rows.append(row)
    if expected is not None:
        head.insert(-1, "START")
    return table(head, rows)


def _start(expected: Expected | None) -> str:
    if expected is None:
        return "N/A"
    when = write_moment(expected.start)
    return f"by {when}" if expected.certain else f"about {when}"


def _where(job: Job) -> str:
    if job.state == PENDING:
        return f"({job.reason}) {job.detail}"
    return ",".join(job.gpu_uuids) or "CPU"


def add_job(parser: argparse.ArgumentParser) -> None:
    """Add the names of jobs, and ``--json``."""
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="12, 12-14, 40_3, NAME, @")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_show(options: argparse.Namespace, store: Store) -> int:
    """Print all about jobs."""
    _refresh(store)
    jobs = select(store, options.jobs)
    if options.json:
        print(json.dumps([job.to_json() for job in jobs]))
        return 0
    for job in jobs:
        state = job.state + (f" ({job.reason})" if job.reason != "None" else "")
        rows = [
            ("Job", f"{job.label}  {job.name}"),
            ("State", f"{state}  {job.detail}".rstrip()),
            ("Command", shlex.join(job_command(job))),
            ("Folder", job.spec.cwd),
            ("Output", log_paths(job)[0]),
            ("GPUs", f"{job.gpus}  {' '.join(job.gpu_uuids)}".rstrip()),
            ("Limit", write_limit(job.limit)),
            ("Submitted", write_moment(job.submitted)),
            ("Started", write_moment(job.started)),
            ("Ended", write_moment(job.ended)),
            ("Attempt", str(job.attempt)),
        ]
        if job.exit_code is not None:
            rows.append(("Exit code", str(job.exit_code)))
        if job.memory or job.cpus:
            memory = format_bytes(job.memory) if job.memory else "no limit"
            rows.append(("Cores, memory", f"{job.cpus}, {memory}"))
        print(*(f"{name:>14}: {value}" for name, value in rows), "", sep="\n")
    return 0


def add_logs_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist logs``."""
    parser.add_argument("job", metavar="JOB", help="12, 40_3, NAME, @")
    parser.add_argument("-f", "--follow", action="store_true", help="until the job has ended")
    parser.add_argument("-e", "--error", action="store_true", help="the file of standard error")


def run_logs(options: argparse.Namespace, store: Store) -> int:
    """Print what a job has printed."""
    _refresh(store)
    job = select(store, [options.job])[0]
    if options.follow:
        follow(store, job, sys.stdout.buffer)
        return 0
    if job.started is None:
        raise DistError("no_log", f"Job {job.label} has not started: {job.state}.", job.detail)
    for piece in read_from(log_paths(job)[1 if options.error else 0], 0):
        sys.stdout.buffer.write(piece)
    return 0


def add_wait_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist wait``."""
    parser.add_argument("jobs", nargs="+", metavar="JOB", help="12, 12-14, 40, NAME, @")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait no longer")


def run_wait(options: argparse.Namespace, store: Store) -> int:
    """Wait until jobs have ended; 0 if all are COMPLETED, 124 if that takes too long."""
    until = None if options.timeout is None else time.monotonic() + options.timeout
    wake = Wake([store.watched])
    while True:
        _refresh(store)
        jobs = select(store, options.jobs)
        if all(job.is_ended for job in jobs):
            return 0 if all(job.state == COMPLETED for job in jobs) else 1
        left = 10.0 if until is None else min(10.0, until - time.monotonic())
        if left <= 0:
            return 124
        wake.wait(left)


def add_history_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist history``."""
    parser.add_argument("-n", "--last", type=int, default=50, help="this many jobs; default 50")
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_history(options: argparse.Namespace, store: Store) -> int:
    """Print the jobs that have ended, the newest last."""
    _refresh(store)
    marks = ", ".join("?" * len(ENDED))
    jobs = store.select(f"state IN ({marks})", *ENDED, order=f"ended DESC LIMIT {options.last}")[
        ::-1
    ]
    if options.json:
        print(json.dumps([job.to_json() for job in jobs]))
        return 0
    rows = [
        (
            job.label,
            job.name,
            job.state,
            "" if job.exit_code is None else str(job.exit_code),
            write_moment(job.ended),
            write_limit(job.ended - job.started) if job.started and job.ended else "0:00",
            str(job.gpus),
            job.detail,
        )
        for job in jobs
    ]
    print(table(("JOBID", "NAME", "STATE", "EXIT", "ENDED", "TIME", "GPUS", "DETAIL"), rows))
    return 0


def add_info_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist info``."""
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_info(options: argparse.Namespace, store: Store) -> int:
    """Print the GPUs: how busy, and who has them."""
    seen = asyncio.run(read_gpu_state())
    leases = holders(seen.inventory)
    if options.json:
        gpus = [
            {"uuid": gpu.uuid, "index": gpu.label, "name": gpu.name, "holder": leases.get(gpu.uuid)}
            for gpu in seen.inventory.gpus
        ]
        print(json.dumps({"gpus": gpus, "reason": seen.inventory.reason}))
        return 0
    if not seen.inventory.gpus:
        print(seen.inventory.reason)
        return 0
    rows = []
    for gpu in seen.inventory.gpus:
        sample = seen.samples.get(gpu.uuid, {})
        used, load = sample.get("memory_used"), sample.get("utilization")
        who = leases.get(gpu.uuid)
        holder = (
            f"{who['user'] or 'another program'} {who.get('notebook') or ''}" if who else "free"
        )
        since = write_moment(who.get("since")) if who else ""
        memory = f"{format_bytes(int(used or 0))} / {format_bytes(gpu.memory_total)}"
        rows.append(
            (gpu.label, gpu.name, "" if load is None else f"{load} %", memory, since, holder)
        )
    print(table(("GPU", "NAME", "LOAD", "MEMORY", "SINCE", "HOLDER"), rows))
    return 0
