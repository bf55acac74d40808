"""``jdist cancel``, ``hold``, ``release``, ``requeue`` and ``update``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from ..common.errors import DistError
from ..jobs import job_control
from ..jobs.select_jobs import select
from ..jobs.store.job import Job
from ..jobs.store.states import ENDED
from ..jobs.store.store import Store
from ..jobs.submit.prepare_submission import signal_number
from .printing import StoppedNotice, printable


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Add the ways to name jobs."""
    parser.add_argument(
        "jobs", nargs="*", metavar="JOB", help="12, 12-14, 40_3, 40, NAME, 'lr*', @"
    )
    parser.add_argument("--all", action="store_true", help="all jobs that have not ended")
    parser.add_argument("--json", action="store_true", help="as JSON: the jobs, and what was left")


def add_update_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist update``."""
    add_choice(parser)
    parser.add_argument("-t", "--time", metavar="LIMIT", help="another time limit")
    parser.add_argument("--priority", type=int, help="another priority, of jobs that wait")
    parser.add_argument("-J", "--job-name", dest="name", help="another name")
    parser.add_argument("-G", "--gpus", type=int, help="another number of GPUs, of jobs that wait")
    parser.add_argument("--comment", help="another comment")
    parser.add_argument(
        "--grace", type=int, metavar="SECONDS", help="another time between SIGTERM and SIGKILL"
    )


def add_cancel_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist cancel``."""
    add_choice(parser)
    parser.add_argument("--now", action="store_true", help="kill at once, without SIGTERM first")
    parser.add_argument("-s", "--signal", metavar="SIG", help="only send a signal: USR1, INT")


def add_requeue_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist requeue``."""
    add_choice(parser)
    told = "also jobs that --kill-on-invalid-dep cancelled because of these"
    parser.add_argument("--cascade", action="store_true", help=told)


add_hold_options = add_release_options = add_choice


def chosen(options: argparse.Namespace, store: Store) -> list[Job]:
    """Return the jobs that a command names."""
    if options.all:
        return store.select_many(f"state NOT IN {ENDED}")
    if not options.jobs:
        raise DistError("bad_option", "No job is named.", "Such as 12, 12-14, 40_3, or --all.")
    return select(store, options.jobs)


def _tell(
    options: argparse.Namespace, store: Store, jobs: Sequence[Job], left: Sequence[str]
) -> bool:
    """Print what was not changed, and as JSON the jobs; return whether any was not changed."""
    if options.json:
        told = [job.to_json() for job in store.get_all([job.id for job in jobs])]
        print(json.dumps({"jobs": told, "left": list(left)}))
    else:
        for sentence in left:
            print(printable(sentence), file=sys.stderr)
    return bool(left)


def run_cancel(options: argparse.Namespace, store: Store) -> int:
    """Cancel jobs, and name those that have ended already."""
    jobs = chosen(options, store)
    if options.signal:
        left = job_control.send_signal(jobs, signal_number(options.signal))
        return 2 if _tell(options, store, jobs, left) else 0
    _tell(options, store, jobs, job_control.cancel(store, jobs, options.now))
    StoppedNotice(store).look()
    return 0


def _change(
    change: Callable[[Store, Sequence[Job]], Sequence[str]],
    options: argparse.Namespace,
    store: Store,
) -> int:
    jobs = chosen(options, store)
    return 2 if _tell(options, store, jobs, change(store, jobs)) else 0


run_hold = partial(_change, job_control.hold)
run_release = partial(_change, job_control.release)


def run_requeue(options: argparse.Namespace, store: Store) -> int:
    """Start jobs again that have ended."""
    return _change(partial(job_control.requeue, cascade=options.cascade), options, store)


def run_update(options: argparse.Namespace, store: Store) -> int:
    """Change jobs; fail if nothing could be changed."""
    jobs = chosen(options, store)
    fields = job_control.Update.__struct_fields__
    wanted = job_control.Update(**{name: getattr(options, name) for name in fields})
    asked = sum(value is not None for value in msgspec.structs.astuple(wanted))
    if not asked:
        raise DistError("bad_option", "No change is given.", "Such as --time 2:00:00.")
    left = job_control.update(store, jobs, wanted)
    _tell(options, store, jobs, left)
    return 2 if left and len(left) == asked * len(jobs) else 0
