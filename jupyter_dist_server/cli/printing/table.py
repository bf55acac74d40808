"""Tables in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

_CUT = ("NAME", "FOLDER", "COMMENT")
"""Columns whose texts may have any length."""
_LEAST = 16
"""Characters that are left of such a text."""
_LAST = 20
"""Characters of the last column for which others are cut."""
_PADDED = 60
"""Characters to which a column is padded where nothing is cut."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, below: bool = False) -> str:
    """Return rows in columns; in a terminal, long names are cut, and the last column at its width.

    Parameters
    ----------
    head : sequence of str
        What stands above the columns.
    rows : sequence of sequence of str
        One text for each column.
    below : bool
        Whether the last column is not cut in a terminal, but stands in lines of its own.
    """
    clean = [[printable(cell) for cell in row] for row in [list(head), *rows]]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    if not sys.stdout.isatty():
        # What is longer moves the rest of its own line only.
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
    r"""Return a text in one line that a terminal cannot take for a command: ESC becomes ``\x1b``.

    Names of files need not be text; a byte of one that is not becomes ``\xff``.
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else _escaped(mark) for mark in text)


def _escaped(mark: str) -> str:
    code = ord(mark)
    if 0xDC80 <= code <= 0xDCFF:  # a byte, see PEP 383
        return f"\\x{code - 0xDC00:x}"
    return mark.encode("unicode_escape").decode()
