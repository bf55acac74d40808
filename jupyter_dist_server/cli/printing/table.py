"""Tables in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows in columns; the last one is cut at the terminal's width.

    Parameters
    ----------
    head : sequence of str
        What stands above the columns.
    rows : sequence of sequence of str
        One text for each column.
    """
    clean = [[printable(cell) for cell in row] for row in [list(head), *rows]]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    width = 10_000
    if sys.stdout.isatty():
        import shutil  # not above: it loads compressors

        width = shutil.get_terminal_size((200, 24)).columns
    lines = []
    for row in clean:
        cells = [cell.ljust(size) for cell, size in zip(row[:-1], widths[:-1], strict=True)]
        lines.append("  ".join([*cells, row[-1]])[:width].rstrip())
    return "\n".join(lines)


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
