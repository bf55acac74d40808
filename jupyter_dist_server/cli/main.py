"""The commands of ``jdist``; each imports what it needs when it is called."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..common.errors import DistError

if TYPE_CHECKING:
    import argparse

    from ..jobs.store.store import Store
    from ..jobs.submit.job_options import Parser

COMMANDS = {
    "submit": ("submit", "Queue a command or a script."),
    "run": ("submit", "Queue a command, wait for it, and show what it prints."),
    "notebook": ("submit", "Queue a notebook."),
    "queue": ("queue", "Show what waits and runs."),
    "info": ("info", "Show the GPUs and who has them."),
    "show": ("show_and_logs", "Show all about a job."),
    "logs": ("show_and_logs", "Show what a job has printed."),
    "why": ("why", "Say why the ranks of a job wait for each other."),
    "wait": ("show_and_logs", "Wait until jobs have ended."),
    "history": ("show_and_logs", "Show the jobs that have ended."),
    "cancel": ("cancel_and_update", "Cancel jobs."),
    "hold": ("cancel_and_update", "Keep jobs from starting."),
    "release": ("cancel_and_update", "Let held jobs start."),
    "requeue": ("cancel_and_update", "Start jobs again that have ended."),
    "update": ("cancel_and_update", "Change jobs."),
    "report": ("report", "Show the GPU hours of users and jobs."),
    "profile": ("profile", "Compare two profiles of a cell or script."),
    "drain": ("close_gpus", "Keep new work from GPUs; for administrators."),
    "undrain": ("close_gpus", "Let new work have drained GPUs again."),
    "reserve": ("close_gpus", "Keep GPUs free for some users for a time; for administrators."),
    "reservations": ("close_gpus", "Show reserved and drained GPUs, or end reservations."),
    "mcp": ("mcp", "Give a coding agent tools for ranks and jobs, by a running Jupyter server."),
    "doctor": ("doctor", "Find what threatens jobs on this machine."),
    "service": ("service", "Have waiting jobs start after a restart of the machine."),
    "aliases": ("aliases.print_aliases", "Print the words of gflow or Slurm, for a shell."),
}
"""By name, the module with ``add_NAME_options`` and ``run_NAME``, and a description."""
ALIASES = {
    "gbatch": "gflow",
    "gqueue": "gflow",
    "ginfo": "gflow",
    "gcancel": "gflow",
    "gjob": "gflow",
    "gflowd": "gflow",
    "sbatch": "slurm",
    "squeue": "slurm",
    "scancel": "slurm",
    "sinfo": "slurm",
    "sacct": "slurm",
    "scontrol": "slurm",
}
"""Whose each program is: the module of ``aliases`` that has a function of its name."""

_SUBMITTING = ["submit"], ["notebook"]
"""Commands that first start a dispatcher: both import at the same time."""
_NOT_STARTING = {"-h", "--help", "-H", "--hold", "--dry-run"}
"""Options with which nothing is to start; in the job's own command, they only cost time."""
_UNWRITABLE = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO
"""Errors of an output on a full disk; errors of files that we open have their names."""
_OFFERED = 200
"""Jobs that completion offers."""


def _function(name: str, start: str, end: str = "") -> Callable[..., Any]:
    found: Callable[..., Any] = getattr(
        import_module(f".{COMMANDS[name][0]}", __package__), f"{start}_{name}{end}"
    )
    return found


def options_of(name: str) -> Callable[..., None]:
    """Return the function that adds the options of a command to its parser."""
    return _function(name, "add", "_options")


def run_of(name: str) -> Callable[[Any, Store], int]:
    """Return what runs a command with its options."""
    return _function(name, "run")


def _build(sentences: Mapping[str, str], options: Mapping[str, Callable[[Parser], None]]) -> Parser:
    from ..jobs.submit.job_options import Parser  # not above: see `script`

    parser = Parser(prog="jdist", description="Batch jobs on the GPUs of this machine.")
    parser.add_argument("--version", action="store_true", help="print the version")
    # Without `prog`, argparse would format a usage to find it.
    parts = parser.add_subparsers(
        prog="jdist", dest="subcommand", metavar="COMMAND", parser_class=Parser
    )
    for name, sentence in sentences.items():
        part = parts.add_parser(name, help=sentence, description=sentence)
        if name in options:
            options[name](part)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, 2 for invalid input."""
    argv = sys.argv[1:] if argv is None else argv
    name = argv[0] if argv and argv[0] in COMMANDS else None
    sentences = {command: sentence for command, (_, sentence) in COMMANDS.items()}
    try:
        if "_ARGCOMPLETE" in os.environ:
            _complete(sentences)
        if argv and argv[0] in ALIASES:
            module = import_module(f".aliases.{ALIASES[argv[0]]}", __package__)
            code = _run(getattr(module, argv[0]), argv[1:])
            sys.stdout.flush()
            return code
        if argv and not name and not argv[0].startswith("-"):
            raise _unknown(argv[0], None)
        if name:  # the parsers of all others would take as long as the command
            sentences = {name: sentences[name]}
        parser = _build(sentences, {name: options_of(name)} if name else {})
        options, unknown = parser.parse_known_args(argv)
        if unknown:
            raise _unknown(unknown[0], name)
        if options.version:
            from ..common.package_version import version

            print(version())
            return 0
        if name is None:
            parser.print_help()
            return 2
        code = _run(run_of(name), options)
        sys.stdout.flush()  # not at exit, where an error is a traceback
        return code
    except DistError as error:
        from .printing import printable

        print("jdist:", *map(printable, str(error).splitlines()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # such as jdist queue | head
        _print_no_more()
        return 141
    except OSError as error:
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        _print_no_more()
        print(f"jdist: Nothing more can be written: {error.strerror}.", file=sys.stderr)
        return 2


def _unknown(word: str, name: str | None) -> DistError:
    from ..common.nearest_name import did_you_mean, option_names
    from ..jobs.submit.job_options import Parser

    if name is None:
        near = did_you_mean(word, COMMANDS)
        return DistError("bad_option", f"jdist has no command “{word}”.", f"{near}See jdist -h.")
    parser = Parser()
    options_of(name)(parser)
    near = did_you_mean(word, option_names(parser))
    message = f"jdist {name} does not know “{word}”."
    return DistError("bad_option", message, f"{near}See jdist {name} -h.")


def _print_no_more() -> None:
    """Drop the rest of the output, which Python would try to print again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(run: Callable[[Any, Store], int], options: Any) -> int:
    from ..jobs.store.store import Store
    from ..jobs.store.store_folder import store_folder

    store = Store(store_folder())
    try:
        return run(options, store)
    finally:
        store.close()


def _complete(sentences: dict[str, str]) -> None:
    """Answer a shell's request for completions, if argcomplete is installed."""
    try:
        import argcomplete
        from argcomplete.completers import BaseCompleter, FilesCompleter
    except ImportError:
        return
    files = FilesCompleter()

    class Completer(BaseCompleter):
        def __call__(self, *, prefix: str, action: argparse.Action, **_: object) -> Iterable[str]:
            return _job_names(prefix) if action.dest in ("job", "jobs") else files(prefix)

    parser = _build(sentences, {name: options_of(name) for name in COMMANDS})
    argcomplete.autocomplete(parser, default_completer=Completer())


def _job_names(prefix: str) -> list[str]:
    from ..jobs.store.store import Store
    from ..jobs.store.store_folder import store_folder

    with contextlib.closing(Store(store_folder())) as store:
        newest = store.select("1", order=f"id DESC LIMIT {_OFFERED}")
    return [job.label for job in newest if job.label.startswith(prefix)]


def script() -> None:
    """Be the program ``jdist``."""
    if sys.stdout is None:  # a file that we open would take its place
        sys.exit("jdist: Standard output is closed. Redirect it, such as to /dev/null.")
    gc.set_threshold(100_000)  # with 10,000 jobs, looking for garbage takes a quarter of the time
    if sys.argv[1:2] in _SUBMITTING and not _NOT_STARTING & set(sys.argv):
        from ..jobs.start_dispatcher import announce_job
        from ..jobs.store.store_folder import store_folder

        with contextlib.suppress(OSError, RuntimeError):  # which the command says
            announce_job(store_folder())
    sys.exit(main())
