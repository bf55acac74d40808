"""From a user's words to jobs in the store: parameters, arrays, dependencies, checks."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Sequence
from pathlib import Path

from ...common.errors import DistError
from ..schedule.may_start import ANY
from ..select_jobs import select
from ..store.store import Store

MOST = 100_000
"""Jobs of one submission at most."""
TYPES = ("after", "afterany", "afternotok", "afterok", "singleton")
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
_OR = re.compile(r"\?(?=after|singleton)")
"""Other question marks belong to patterns of names."""
_DELAYED = re.compile(r"(.+)(\+\d{1,6})", re.ASCII)
"""A job and minutes."""
_ARRAY = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", re.ASCII)


def sweep(params: Sequence[str]) -> list[dict[str, str]]:
    """Return all combinations of parameters, from ``name=a,b,c`` each; of none, one without any."""
    names: list[str] = []
    values = []
    for text in params:
        name, equals, listed = text.partition("=")
        if not (name.isidentifier() and equals and listed):
            message = f"--param takes NAME=VALUE[,VALUE…], not “{text}”."
            raise DistError("bad_parameter", message, "Such as --param lr=0.1,0.01.")
        if name in names:
            hint = f"Give all of its values at once: --param {name}=A,B."
            raise DistError("bad_parameter", f"--param {name} is there twice.", hint)
        names.append(name)
        values.append(listed.split(","))
    check_count(math.prod(map(len, values)))
    return [dict(zip(names, chosen, strict=True)) for chosen in itertools.product(*values)]


def read_parameter_file(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, whose first row has the names of parameters."""
    try:
        if not path.is_file():  # of a pipe, there may never be anything to read
            raise FileNotFoundError("there is no such file")
        # Excel begins a file with a byte order mark.
        with path.open(newline="", encoding="utf-8-sig") as file:
            names, *rows = [row for row in csv.reader(file) if row] or [[]]
    except (OSError, ValueError, csv.Error) as error:
        raise DistError("bad_parameter", f"{path} cannot be read: {error}.") from error
    hint = "Its first row has the names, such as lr,seed; each further row is a job."
    if not rows:
        raise DistError("bad_parameter", f"{path} has no parameters.", hint)
    if unusable := [name for name in names if not name.isidentifier()]:
        message = f"“{unusable[0]}” in {path} is not a name of a parameter."
        raise DistError("bad_parameter", message, hint)
    if twice := [name for name in names if names.count(name) > 1]:
        raise DistError("bad_parameter", f"{path} has two columns {twice[0]}.", hint)
    if bad := [number for number, row in enumerate(rows, 2) if len(row) != len(names)]:
        message = f"Row {bad[0]} of {path} does not have {len(names)} values."
        raise DistError("bad_parameter", message)
    return [dict(zip(names, row, strict=True)) for row in rows]


def check_count(count: int) -> None:
    """Refuse more jobs than one submission can have."""
    if count > MOST:
        message = f"One submission has at most {MOST:,} jobs, not {count:,}."
        raise DistError("too_many_jobs", message)


def check_parameters(argv: Sequence[str], rows: Sequence[dict[str, str]]) -> None:
    """Refuse parameters that the command does not use, and placeholders without a parameter."""
    given = set().union(*rows)
    used = {name for word in argv for name in _PLACEHOLDER.findall(word)}
    if unused := sorted(given - used):
        message = f"The command does not use the parameter {unused[0]}."
        hint = f"Put {{{unused[0]}}} where its value belongs."
        raise DistError("bad_parameter", message, hint, "param")
    # Braces alone may be meant for the command; with its own --param, they never are.
    is_late = any(word.split("=")[0] in ("--param", "--param-file") for word in argv)
    if (given or is_late) and (missing := sorted(used - given)):
        message, hint = (
            f"{{{missing[0]}}} in the command has no value.",
            f"Add --param {missing[0]}=VALUE.",
        )
        if is_late:
            hint = "Put --param before the command: what follows the command is passed to it."
        raise DistError("bad_parameter", message, hint, "param")


def read_array(text: str) -> tuple[list[int], int | None]:
    """Return an array's task numbers, and how many run at once: ``1-9``, ``0-15:4``, ``1,3%2``."""
    listed, percent, most = text.partition("%")
    tasks: list[int] = []
    hint = f"Use 0-9, 1,3,5 or 0-99%4 (at most 4 at once); at most {MOST:,} tasks."
    for part in listed.split(","):
        match = _ARRAY.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not match or match[3] == "0" or not 0 <= last - first <= MOST:
            where = "" if part == text else f" in “{text}”"
            raise DistError("bad_array", f"“{part}”{where} is not a list of tasks.", hint)
        tasks += range(first, last + 1, int(match[3] or 1))
    if percent and not (most.isdigit() and int(most) > 0):
        raise DistError("bad_array", f"“%{most}” in “{text}” is no number of tasks.", hint)
    return sorted(set(tasks)), int(most) if percent else None


def read_dependencies(text: str, store: Store) -> tuple[list[tuple[int, str]], bool]:
    """Return the jobs of ``afterok:12:13,afterany:14``, and whether ``singleton`` is among them.

    ``after:12+5`` is five minutes after the start of job 12; with ``?`` before each further type,
    one of them is enough.
    """
    found: list[tuple[int, str]] = []
    singleton = False
    parts = _OR.split(text)
    any_of = ANY if len(parts) > 1 else ""
    for part in filter(None, parts if any_of else text.split(",")):
        kind, *labels = part.split(":")
        is_alone = kind == "singleton" and not any_of
        if kind not in TYPES or (not labels) != is_alone:
            hint = (
                "Use TYPE:JOB[:JOB…] with after, afterok, afternotok or afterany; or singleton. "
                "Write “,” between all that are required, or “?” if one is enough."
            )
            raise DistError("bad_dependency", f"“{part}” is not a dependency.", hint)
        singleton = singleton or is_alone
        try:
            for label in labels:
                delayed = _DELAYED.fullmatch(label) if kind == "after" else None
                name, delay = delayed.groups() if delayed else (label, "")
                jobs = select(store, [name], whole=True)
                found += [(job.id, f"{any_of}{kind}{delay}") for job in jobs]
        except DistError as error:
            hint = (
                "A dependency is one of your own jobs, see “jdist queue”. For another user's job, "
                "wait in a line that runs first: --setup 'COMMAND'."
            )
            raise DistError(error.code, error.message, hint, "dependency") from error
    return found, singleton


def name_jobs(store: Store, ids: range) -> str:
    """Return the words for jobs of one submission: ``job 12``, or ``jobs 13_0 … 13_7``."""
    last = f" … {store.get(ids[-1]).label}" if len(ids) > 1 else ""
    return f"job{'s' * (len(ids) > 1)} {store.get(ids[0]).label}{last}"
