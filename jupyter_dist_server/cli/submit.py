"""``jdist submit``, ``notebook`` and ``run``."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace

from ..common.errors import DistError
from ..common.units import format_gpus
from ..jobs.store.job import Job
from ..jobs.store.states import COMPLETED
from ..jobs.store.store import Store
from ..jobs.submit.job_options import add_job_options
from ..jobs.submit.job_request import JobRequest
from ..jobs.submit.options_in_environment import complete_from
from ..jobs.submit.prepare_submission import Submission, prepare
from ..jobs.submit.submission import name_jobs
from .printing import StoppedNotice, printable

OTHER_COMMANDS = {"queue", "show", "logs", "wait", "history", "cancel", "hold", "release", "info"}
"""Commands of jdist that people write behind ``jdist submit`` by mistake."""


def add_submit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist submit``."""
    add_job_options(parser)
    _add_answer_options(parser)
    parser.add_argument("--wrap", metavar="TEXT", help="run this text in a shell")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command, or a script")


def add_notebook_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist notebook``."""
    parser.add_argument("notebook", metavar="NOTEBOOK", help="a file.ipynb, which stays as it is")
    add = parser.add_argument
    add("-P", "--parameter", action="append", metavar="NAME=VALUE", help="set in the notebook")
    add("-O", "--output-notebook", metavar="FILE", help="what to write; default NOTEBOOK-%%j.ipynb")
    _add_answer_options(parser)
    add_job_options(parser)


def _add_answer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parsable", action="store_true", help="print the id alone")
    parser.add_argument("--json", action="store_true", help="print the jobs as JSON")
    parser.add_argument("--dry-run", action="store_true", help="check and print; queue nothing")
    parser.set_defaults(is_batch=False, files="jdist")  # for sbatch and gbatch


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist run``."""
    add_job_options(parser)
    parser.add_argument(
        "--json", action="store_true", help="lines of JSON: the job, its output, the job at its end"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command, or a script")


def run_submit(options: argparse.Namespace, store: Store) -> int:
    """Queue jobs, and print their ids."""
    with ExitStack() as unless_queued:
        asked = _prepare(options, store, unless_queued)
        if options.dry_run:
            _say_what_would_be(asked, options, store)
            return 0
        is_known = bool(asked.known(store))
        ids = asked.submit(store)
        unless_queued.pop_all()
    if options.json:
        jobs = store.select("id BETWEEN ? AND ?", ids[0], ids[-1])
        print(json.dumps([job.to_json() for job in jobs]))
    elif options.parsable:
        print(ids[0])
    elif options.is_batch:
        print(f"Submitted batch job {ids[0]}")
    else:
        named = name_jobs(store, ids)
        key = printable(asked.key or "")
        known = f"Nothing was submitted: the key {key} is that of {named}."
        print(known if is_known else f"Submitted {named}.")
    StoppedNotice(store).look()
    if ids[0] == 1 and not (is_known or options.json or options.parsable):
        _say_what_ends_jobs()
    return 0


run_notebook = run_submit


def _say_what_would_be(asked: Submission, options: argparse.Namespace, store: Store) -> None:
    from ..jobs.submit.dry_run import dry_run  # not above: submitting does without

    told = dry_run(asked, store)
    if options.json:
        print(json.dumps(told.to_json()))
        return
    if not told.count:
        print(printable(told.sentence))
        return
    jobs = f"{told.count} job{'s' * (told.count > 1)}"
    print(f"Would submit {jobs}, {format_gpus(asked.job.gpus)} each:")
    print(*(f"  {printable(command)}" for command in told.commands), sep="\n")
    if told.count > len(told.commands) and len(asked.rows) > 1:
        print("  …")
    print(told.sentence)


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
    """Queue one job, show its output, and exit as it does; Ctrl+C cancels it."""
    from ..jobs.job_command import log_paths
    from ..jobs.job_control import cancel
    from ..jobs.log_reader import LogReader
    from .follow_output import follow, show

    with ExitStack() as unless_queued:
        asked = _prepare(options, store, unless_queued)
        if asked.count > 1 or asked.tasks or asked.job.spec.every:
            hint = "Use jdist submit for several."
            raise DistError("bad_option", "jdist run starts one job.", hint)
        is_known = bool(asked.known(store))
        queued = store.get(asked.submit(store)[0])
        unless_queued.pop_all()
    _tell(options, queued, f"has the key {asked.key} already." if is_known else "is queued.")

    def on_interrupt(number: int, frame: object) -> None:
        cancel(store, [store.get(queued.id)])

    signal.signal(signal.SIGINT, on_interrupt)
    log = LogReader(log_paths(queued)[0])
    show(follow(store, queued, log), log, raw=True, as_json=options.json)
    ended = store.get(queued.id)
    if options.json or ended.state != COMPLETED or ended.detail:
        _tell(options, ended, f"is {ended.state}. {ended.detail}".rstrip())
    if ended.state == COMPLETED:
        return 0
    return 128 + ended.exit_signal if ended.exit_signal else ended.exit_code or 1


def _tell(options: argparse.Namespace, job: Job, sentence: str) -> None:
    if options.json:
        print(json.dumps(job.to_json()), flush=True)
    else:
        print(f"Job {job.label} {printable(sentence)}", file=sys.stderr)


def _keep_input(store: Store) -> str:
    """Keep a script from standard input in a file, which does not change; return its path."""
    body = sys.stdin.buffer.read()
    if not body.strip():
        hint = "Such as jdist submit python train.py"
        raise DistError("bad_option", "There is no command.", hint)
    folder = store.folder / "scripts"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{time.time_ns()}-stdin"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(body)
    return str(path)


def _prepare(options: argparse.Namespace, store: Store, unless_queued: ExitStack) -> Submission:
    if getattr(options, "command", [])[:1] == ["--"]:
        options.command = options.command[1:]
    try:
        folder = os.getcwd()
    except FileNotFoundError as error:
        if not os.path.isabs(options.chdir or ""):
            hint = "Change to another one, or choose one with -D."
            raise DistError("bad_option", "The working directory was deleted.", hint) from error
        folder = os.readlink("/proc/self/cwd")  # FOLDER (deleted), without files
    piped = ""
    if getattr(options, "wrap", None):
        if options.command:
            raise DistError("bad_option", "A job runs a command or what --wrap says, not both.")
        options.command = ["sh", "-c", options.wrap]
        options.name = options.name or "wrap"
    elif getattr(options, "command", None) == [] and not (options.like or sys.stdin.isatty()):
        options.command = [piped := _keep_input(store)]
        unless_queued.callback(os.unlink, piped)
    request = JobRequest.of(options)
    notices = complete_from(request, os.environ)
    try:
        asked = prepare(request, store, folder, getattr(options, "files", "jdist"))
    except DistError as error:
        if error.field == "command" and not error.hint and request.command[0] in OTHER_COMMANDS:
            error.hint = f"Did you mean jdist {' '.join(request.command)}?"
        raise
    if asked.job.name == os.path.basename(piped):
        asked.job = replace(asked.job, name="stdin")
    for notice in notices + asked.notices:
        print(f"jdist: {printable(notice)}", file=sys.stderr)
    return asked
