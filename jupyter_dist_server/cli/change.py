"""``jdist cancel``, ``hold``, ``release``, ``requeue`` and ``update``."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from ..common.errors import DistError
from ..jobs.job import AGAIN, Job
from ..jobs.start_dispatcher import ensure
from ..jobs.states import ACTIVE, CANCELLED, ENDED, PENDING
from ..jobs.store import Store
from ..jobs.submission import select
from ..jobs.words import read_limit


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the ways to name jobs."""
    parser.add_argument(
        "jobs", nargs="*", metavar="JOB", help="12, 12-14, 40_3, 40, NAME, 'lr*', @"
    )
    parser.add_argument("--all", action="store_true", help="all jobs that have not ended")


def add_update_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist update``."""
    add_choice(parser)
    parser.add_argument("-t", "--time", metavar="LIMIT", help="another time limit")
    parser.add_argument("--priority", type=int, help="another priority, of jobs that wait")
    parser.add_argument("-J", "--job-name", dest="name", help="another name")


def chosen(options: argparse.Namespace, store: Store) -> list[Job]:
    """Return the jobs that a command names.

    Raises
    ------
    DistError
        If it names none, or one that is not there.
    """
    if options.all:
        return store.select("state NOT IN (" + ", ".join("?" * len(ENDED)) + ")", *ENDED)
    if not options.jobs:
        raise DistError("bad_option", "No job is named.", "Such as 12, 12-14, 40_3, or --all.")
    return select(store, options.jobs)


def cancel_jobs(store: Store, jobs: list[Job]) -> list[Job]:
    """Cancel jobs; return those that had ended already."""
    ended = []
    for job in jobs:
        for _ in range(5):  # it may be started at this very moment
            if job.is_ended:
                ended.append(job)
                break
            now = time.time()
            if job.state == PENDING and store.move(
                job, CANCELLED, ended=now, reason="None", detail="Cancelled before it started."
            ):
                break
            if store.change(
                [job.id], "state IN ('CONFIGURING', 'RUNNING', 'COMPLETING')", cancel_at=now
            ):
                poke(store.get(job.id))
                break
            job = store.get(job.id)
    return ended


def poke(job: Job) -> None:
    """Have a job's runner look at what is wanted of it."""
    if job.runner and (process := job.runner.find()):
        process.send_signal(signal.SIGUSR1)


def add_cancel_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist cancel``."""
    add_choice(parser)
    parser.add_argument("--now", action="store_true", help="kill at once, without SIGTERM first")


def run_cancel(options: argparse.Namespace, store: Store) -> int:
    """Cancel jobs; one that has ended is left as it is, and said."""
    jobs = chosen(options, store)
    for job in cancel_jobs(store, jobs):
        print(f"Job {job.label} had ended: {job.state}.", file=sys.stderr)
    if options.now:
        for job in map(store.get, [job.id for job in jobs]):
            if store.change([job.id], f"state IN {ACTIVE}", kill=True):
                poke(job)
    return 0


def run_hold(options: argparse.Namespace, store: Store) -> int:
    """Keep jobs from starting."""
    jobs = chosen(options, store)
    store.change([job.id for job in jobs], "state = 'PENDING'", held=True)
    return _say_others(store, jobs, "cannot be held")


def run_release(options: argparse.Namespace, store: Store) -> int:
    """Let held jobs start; they count as submitted now."""
    jobs = chosen(options, store)
    ids = [job.id for job in jobs]
    store.change(ids, "state = 'PENDING' AND held", held=False, queued=time.time(), reason="None")
    ensure(store)
    return _say_others(store, jobs, "was not held")


def _say_others(store: Store, jobs: list[Job], what: str) -> int:
    others = [job for job in jobs if store.get(job.id).state != PENDING]
    for job in others:
        print(f"Job {job.label} {what}: it is {job.state}.", file=sys.stderr)
    return 2 if others else 0


def run_requeue(options: argparse.Namespace, store: Store) -> int:
    """Start jobs again that have ended."""
    failed = False
    for job in chosen(options, store):
        fields = {"attempt": job.attempt + 1, "queued": time.time()} | AGAIN
        if not (job.is_ended and store.move(job, PENDING, reason="None", detail="", **fields)):
            failed = True
            print(f"Job {job.label} is {job.state}; cancel it first.", file=sys.stderr)
    ensure(store)
    return 2 if failed else 0


def run_update(options: argparse.Namespace, store: Store) -> int:
    """Change jobs: the time limit, also of one that runs; else of those that wait."""
    jobs = chosen(options, store)
    ids = [job.id for job in jobs]
    if options.time:
        limit = read_limit(options.time)
        store.change(ids, "state NOT IN " + str(ENDED), limit=limit)
        for job in map(store.get, ids):
            if job.state in ACTIVE:
                ends_by = None if limit is None else (job.started or time.time()) + limit
                store.change([job.id], ends_by=ends_by)
                poke(job)
    if options.name:
        store.change(ids, name=options.name)
    if options.priority is not None:
        store.change(ids, "state = 'PENDING'", priority=options.priority)
        if any(job.state != PENDING for job in jobs):
            print("The priority of jobs that run was left as it is.", file=sys.stderr)
    ensure(store)
    return 0
