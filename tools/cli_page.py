"""Writes docs/cli.md from the parser: ``python -m tools.cli_page``."""

from __future__ import annotations

import argparse
from pathlib import Path

from jupyter_dist_server.cli.main import COMMANDS, options_of
from jupyter_dist_server.jobs.submit.job_options import Parser

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
_HEAD = """# Commands of `jdist`

`jdist`, also `jupyter dist`, is the [queue](queue.md) in a terminal. `python -m tools.cli_page`
makes this page from its parser.

For completion in bash and zsh, run `pip install argcomplete`, and put
`eval "$(register-python-argcomplete jdist)"` into `~/.bashrc`.

## JSON

Each command has `--json`. What it prints then stays the same from version to version, except that
fields may be added. Times are seconds since 1970, sizes are bytes, and a job is as
[by REST](rest-jobs.md). Exit codes are the same as without; wrong input is a line on standard error
and exit code 2.
"""
_JSON = {
    "`submit`, `notebook`": "list of the jobs; with `--dry-run` as by `POST /jobs/plan`",
    "`show`, `wait`, `history`": "list of jobs, each with its `attempts`",
    "`cancel`, `hold`, `release`, `requeue`, `update`": "`jobs`: how they are now; `left`: "
    "sentences on those that were left as they are",
    "`queue`": "list of all that runs and waits, as `rows` by `GET /queue`",
    "`info`": "`gpus`: each with its `utilization` (%), `memory_used`, `memory_total`, "
    "`leaseholder`, `in_use` (why it is not free, if nobody leases it), `used_by` (the processes), "
    "`idle_since` and `ends_by`; `reason` if there are none",
    "`logs`": "a line for each piece of the output, of at most 64 KiB: `text`, the bytes `offset` "
    "and `next` where it starts and ends, `size` of the file, and `replaced` if the file is "
    "another one than before",
    "`run`": "the job on the first line, pieces as of `logs`, the job at its end on the last line",
    "`drain`, `undrain`, `reserve`, `reservations`": "list of what is drained and reserved: `gpus` "
    "(UUIDs), `by`, `why`, `start`, `end`, `id` of a reservation, `users`, `groups`; without empty "
    "fields",
    "`report`": "list of users or jobs: `name`, and the GPU-seconds `used` (null if its user keeps "
    "others from reading it), `idle` and `failed`; of jobs also `job` and `state`",
    "`doctor`": "list of what was looked at: `ok`, `what`, `remedy`",
    "`service`": "`installed`; `said`: sentences",
    "`aliases`": "`shell`: what a shell has to read",
}
"""By command: what it prints with ``--json``."""


def page() -> str:
    """Return the text of the page."""
    rows = [f"| {command} | {told} |" for command, told in _JSON.items()]
    json = ["| command | JSON |", "| --- | --- |", *rows, ""]
    return "\n".join([_HEAD, *json, *(_command(name) for name in COMMANDS)])


def _command(name: str) -> str:
    parser = Parser(prog=f"jdist {name}", add_help=False)
    options_of(name)(parser)
    lines = [f"## `jdist {name}`", "", COMMANDS[name][1], ""]
    groups = [(group.title or "", group._group_actions) for group in parser._action_groups]
    for title, actions in groups:
        if not actions:
            continue
        heading = "" if title in ("positional arguments", "options") else title
        lines += [f"| {heading} | |", "| --- | --- |"]
        lines += [f"| {_name(action)} | {_meaning(action)} |" for action in actions]
        lines.append("")
    return "\n".join(lines)


def _name(action: argparse.Action) -> str:
    value = action.metavar or ("|".join(action.choices) if action.choices else action.dest.upper())
    if action.option_strings:
        value = ", ".join(action.option_strings) + ("" if action.nargs == 0 else f" {value}")
    elif action.nargs == argparse.REMAINDER:
        value = "COMMAND …"
    # In backticks, GitHub needs a backslash before a bar, which the site would show.
    name = str(value)
    return f"<code>{name.replace('|', '&#124;')}</code>" if "|" in name else f"`{name}`"


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
