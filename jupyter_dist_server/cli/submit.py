"""``jdist submit`` and ``jdist run``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from ..common.errors import DistError
from ..jobs.store.states import COMPLETED
from ..jobs.store.store import Store
from ..jobs.submit.job_options import add_job_options
from ..jobs.submit.job_request import JobRequest
from ..jobs.submit.prepare import Submission, prepare
from ..jobs.submit.submission import check_parameters, commands


def add_submit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist submit``."""
    add_job_options(parser)
    parser.add_argument("--parsable", action="store_true", help="print the id alone")
    parser.add_argument("--json", action="store_true", help="print the jobs as JSON")
    parser.add_argument("--dry-run", action="store_true", help="check and print; queue nothing")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command, or a script")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist run``."""
    add_job_options(parser)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command, or a script")


def run_submit(options: argparse.Namespace, store: Store) -> int:
    """Queue jobs, and say which."""
    asked = _prepare(options, store)
    if options.dry_run:
        from ..jobs.submit.dry_run import dry_run  # not above: submitting does without

        check_parameters(asked.job.spec.argv, asked.rows)
        count = asked.count
        print(f"Would submit {count} job{'s' * (count > 1)}, {asked.job.gpus} GPUs each:")
        print(*(f"  {command}" for command in commands(asked.job, asked.rows)), sep="\n")
        if len(asked.rows) > 3:
            print("  …")
        print(dry_run(asked, store).sentence)
        return 0
    jobs = asked.submit(store)
    first = jobs[0]
    if options.json:
        print(json.dumps([job.to_json() for job in jobs]))
    elif options.parsable:
        print(first.id)
    elif len(jobs) == 1:
        print(f"Submitted job {first.label}.")
    else:
        print(f"Submitted jobs {first.label} … {jobs[-1].label}.")
    if first.id == 1 and not (options.json or options.parsable):
        _say_what_ends_jobs()
    return 0


def _say_what_ends_jobs() -> None:
    from .doctor import ends_of_jobs  # not above: it is said once
    from .service import is_installed

    for found in ends_of_jobs():
        if not found.ok:
            print(f"jdist: {found.what} {found.remedy}", file=sys.stderr)
    if not is_installed():
        print(
            "jdist: After a restart of the machine, waiting jobs start with the next jdist "
            "command. “jdist service install” starts them by themselves.",
            file=sys.stderr,
        )


def run_run(options: argparse.Namespace, store: Store) -> int:
    """Queue one job, show what it prints, and end as it does; Ctrl+C cancels it."""
    from ..jobs.control import cancel
    from .follow import follow

    asked = _prepare(options, store)
    if asked.count > 1 or asked.tasks:
        raise DistError("bad_option", "jdist run starts one job.", "Use jdist submit for several.")
    queued = asked.submit(store)[0]
    print(f"Job {queued.label} is queued.", file=sys.stderr)

    def on_interrupt(number: int, frame: object) -> None:
        cancel(store, [store.get(queued.id)])

    signal.signal(signal.SIGINT, on_interrupt)
    ended = follow(store, queued, sys.stdout.buffer)
    if ended.state == COMPLETED:
        if ended.detail:
            print(f"Job {ended.label}: {ended.detail}", file=sys.stderr)
        return 0
    print(f"Job {ended.label} is {ended.state}. {ended.detail}", file=sys.stderr)
    return 128 + ended.exit_signal if ended.exit_signal else ended.exit_code or 1


def _prepare(options: argparse.Namespace, store: Store) -> Submission:
    if options.command[:1] == ["--"]:
        options.command = options.command[1:]
    asked = prepare(JobRequest.of(options), store, os.getcwd())
    for notice in asked.notices:
        print(f"jdist: {notice}", file=sys.stderr)
    return asked
