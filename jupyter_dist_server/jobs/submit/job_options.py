"""The options of a job: of ``jdist submit``, of directives in scripts, and the fields in REST."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NoReturn

from ...common.errors import DistError


class Parser(argparse.ArgumentParser):
    """Reports a wrong option as our errors are: one line, and what to do."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(formatter_class=_formatter, **settings)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage and leaving."""
        message = message[:1].upper() + message[1:] + "."
        raise DistError("bad_option", message, f"See {self.prog} -h.")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Format help as wide as the terminal; argparse would load compressors to know that."""
    try:
        columns = os.environ.get("COLUMNS") or os.get_terminal_size(sys.stdout.fileno()).columns
        return argparse.HelpFormatter(prog, width=int(columns) - 2)
    except (OSError, ValueError, AttributeError):
        return argparse.HelpFormatter(prog, width=78)


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add what a job can be asked for with; names and letters are ``sbatch``'s."""
    add = parser.add_argument_group("what the job gets").add_argument
    add("-G", "--gpus", type=int, help="number of GPUs")
    add("--gpu-ids", metavar="IDS", help="the GPUs to use, by index or UUID: 0,3")
    add("--min-gpu-memory", metavar="SIZE", help="only GPUs with this much memory: 20G, 500M")
    add("--share", action="store_true", default=None, help="share its GPUs; needs --gpu-memory")
    told = "memory of each GPU that a sharing job uses: 20G, 500M"
    add("--gpu-memory", metavar="SIZE", help=told)
    add("--force", action="store_true", default=None, help="also GPUs that others use unleased")
    add("-c", "--cpus-per-task", dest="cpus", type=int, help="number of CPU cores")
    add("--mem", metavar="SIZE", help="memory of the machine: 16G")
    add("-t", "--time", metavar="LIMIT", help="time limit: minutes, HH:MM:SS or D-HH:MM:SS")
    add = parser.add_argument_group("when it starts").add_argument
    add("--begin", metavar="WHEN", help="not before: now+2hours, 18:30, 2026-03-01T06:00")
    told = "run it again and again: 6h, 1d, or a line of cron such as “0 3 * * *”"
    add("--every", metavar="TIME", help=told)
    add("-d", "--dependency", metavar="LIST", help="afterok:12,afterany:13:14, singleton")
    told = "cancel the job if its dependency can never be satisfied (default: no)"
    add("--kill-on-invalid-dep", choices=("yes", "no"), help=told)
    add("--priority", type=int, help="higher starts first among your jobs; default 0")
    add("-H", "--hold", action="store_true", default=None, help="wait until “jdist release”")
    add("-a", "--array", metavar="TASKS", help="one job for each number: 0-9, 1,3,5, 0-99%%4")
    add("--param", action="append", metavar="NAME=A,B", help="one job for each combination")
    add("--param-file", metavar="CSV", help="one job for each row; its first row has the names")
    told = "cancel an array's waiting tasks after N have failed; running ones go on"
    add("--max-fails", type=int, metavar="N", help=told)
    add("--max-jobs", type=int, metavar="N", help="at most N jobs of this name run at once")
    add = parser.add_argument_group("how it runs").add_argument
    add("-J", "--job-name", dest="name", help="default: the name of the program")
    add("-D", "--chdir", metavar="FOLDER", help="working directory; default: this one")
    add("-o", "--output", metavar="FILE", help="%%j id, %%A array, %%a task, %%x name")
    add("-e", "--error", metavar="FILE", help="standard error, if not in the same file")
    add("--open-mode", choices=("append", "truncate"), help="keep or replace an older file")
    add("--torchrun", action="store_true", default=None, help="start one rank per GPU by torchrun")
    told = "leave Python in it as it is: “jdist why” then sees less, and the log has no verdicts"
    add("--no-why", action="store_true", default=None, help=told)
    told = "profile N steps of the optimizer on each rank; the log says why they are slow"
    add("--profile-steps", type=int, metavar="N", help=told)
    add("--env", action="append", metavar="K=V", help="set a variable")
    add("--export", metavar="LIST", help="ALL, NONE, or names of variables to keep and K=V")
    add("--conda", metavar="ENV", help="activate a conda environment first")
    add("--venv", metavar="FOLDER", help="activate a virtual environment first")
    add("--kernel", metavar="NAME", help="use the environment of a Jupyter kernel")
    add("--module", action="append", metavar="NAME", help="load an environment module first")
    add("--setup", action="append", metavar="LINE", help="run a line of bash first")
    told = "send a signal before the time limit: USR1@120; with B: to the script's shell alone"
    add("--signal", metavar="[B:]SIG[@SECONDS]", help=told)
    add("--grace", type=int, metavar="SECONDS", help="from SIGTERM to SIGKILL; default 30")
    add("--requeue", action="store_true", default=None, help="start again if the machine fails")
    add("--requeue-on", metavar="CODES", help="start again after these exit codes: 75,85")
    told = "at its end, notify by mailto://…, slack://… and so on, or run a command in a shell"
    add("--notify", metavar="URL", help=told)
    add("--log-max", metavar="SIZE", help="cut the middle out of a longer output; default 1G")
    add("--comment", help="anything")
    add("--like", metavar="JOB", help="ask for the same as a job did, but for the options given")
    add("--key", help="names this submission: the same key again submits nothing")
