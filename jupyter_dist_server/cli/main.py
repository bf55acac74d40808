"""The commands of ``jdist``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..common.errors import DistError
from ..common.version import version
from ..jobs.store import Store
from ..jobs.store_folder import store_folder
from .change import (
    add_cancel_options,
    add_choice,
    add_update_options,
    run_cancel,
    run_hold,
    run_release,
    run_requeue,
    run_update,
)
from .info import add_info_options, run_info
from .look import (
    add_history_options,
    add_job,
    add_logs_options,
    add_wait_options,
    run_history,
    run_logs,
    run_show,
    run_wait,
)
from .notebook import add_notebook_options, run_notebook
from .parser import build
from .queue import add_queue_options, run_queue
from .submit import add_run_options, add_submit_options, run_run, run_submit

COMMANDS = {
    "submit": (add_submit_options, "Queue a command or a script.", run_submit),
    "run": (add_run_options, "Queue a command, wait for it, and show what it prints.", run_run),
    "notebook": (add_notebook_options, "Queue a notebook.", run_notebook),
    "queue": (add_queue_options, "Show the jobs that wait or run.", run_queue),
    "show": (add_job, "Show all about a job.", run_show),
    "logs": (add_logs_options, "Show what a job has printed.", run_logs),
    "wait": (add_wait_options, "Wait until jobs have ended.", run_wait),
    "history": (add_history_options, "Show the jobs that have ended.", run_history),
    "info": (add_info_options, "Show the GPUs and who has them.", run_info),
    "cancel": (add_cancel_options, "Cancel jobs.", run_cancel),
    "hold": (add_choice, "Keep jobs from starting.", run_hold),
    "release": (add_choice, "Let held jobs start.", run_release),
    "requeue": (add_choice, "Start jobs again that have ended.", run_requeue),
    "update": (add_update_options, "Change jobs.", run_update),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 2 where the input was wrong."""
    parser = build({name: (add, sentence) for name, (add, sentence, _) in COMMANDS.items()})
    try:
        options = parser.parse_args(argv)
        if options.version:
            print(version())
            return 0
        if options.subcommand is None:
            parser.print_help()
            return 2
        _, _, run = COMMANDS[options.subcommand]
        store = Store(store_folder())
        try:
            return run(options, store)
        finally:
            store.close()
    except DistError as error:
        print(f"jdist: {error!s}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # such as jdist queue | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def script() -> None:
    """Be the program ``jdist``."""
    sys.exit(main())
