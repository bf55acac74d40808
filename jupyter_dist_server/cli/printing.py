"""What several commands print: tables, and notices about stopped processes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from ..jobs.stopped_processes import stopped_processes
from ..jobs.store.store import Store

_CUT = ("NAME", "FOLDER", "COMMENT")
"""Columns with texts of any length."""
_LEAST = 16
"""Characters that are left of such a text."""
_LAST = 20
"""Characters of the last column for which others are cut."""
_PADDED = 60
"""Characters to which a column is padded if nothing is cut."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, below: bool = False) -> str:
    """Return rows in columns; in a terminal, long names and the last column are cut.

    With `below`, the last column is not cut there, but has lines of its own.
    """
    clean = [[printable(cell) for cell in row] for row in [list(head), *rows]]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    if not sys.stdout.isatty():
        # What is longer moves only the rest of its own line.
        padded = [min(size, _PADDED) for size in widths]
        return "\n".join(_line(row, padded) for row in clean)
    import shutil  # not above: it loads compressors

    width = shutil.get_terminal_size((200, 24)).columns
    for place, name in enumerate(head[:-1]):
        if name in _CUT:
            others = sum(widths) - widths[place] - max(0, widths[-1] - _LAST)
            left = width - others - len("  ") * (len(head) - 1)
            widths[place] = min(widths[place], max(_LEAST, left))
    if below and sum(widths) + len("  ") * (len(head) - 1) > width:
        lines = table(head[:-1], [row[:-1] for row in rows]).split("\n")
        indent = " " * (widths[0] + len("  "))
        return "\n".join(
            f"{line}\n{indent}{row[-1]}" for line, row in zip(lines, clean, strict=True)
        )
    return "\n".join(_line(map(_cut, row, widths), widths)[:width] for row in clean)


def _line(row: Iterable[str], widths: Sequence[int]) -> str:
    return "  ".join(map(str.ljust, row, widths)).rstrip()


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"


def printable(text: str) -> str:
    r"""Return a text in one line without terminal commands: ESC becomes ``\x1b``.

    Bytes of file names that are not text become ``\xff``.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in text)


def _escaped(mark: str) -> str:
    code = ord(mark)
    if 0xDC80 <= code <= 0xDCFF:  # a byte, see PEP 383
        return f"\\x{code - 0xDC00:x}"
    return mark.encode("unicode_escape").decode()


class StoppedNotice:
    """Says on standard error which processes of the queue are stopped (SIGSTOP), each once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._said: list[tuple[str, str]] = []

    def look(self) -> None:
        """Look for stopped processes."""
        found = stopped_processes(self._store)
        for told in found:
            if told not in self._said:
                print("jdist:", *told, file=sys.stderr, flush=True)
        self._said = found
