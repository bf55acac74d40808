"""A file of parameters: one job for each of its rows."""

from __future__ import annotations

import csv
from pathlib import Path

from ...common.errors import DistError


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
        raise DistError(
            "bad_parameter", f"Row {bad[0]} of {path} does not have {len(names)} values."
        )
    return [dict(zip(names, row, strict=True)) for row in rows]
