"""Several lines that a program redraws, such as several progress bars of rich.

It hides the cursor, moves it up to draw the lines anew, and shows it again when it is done.
Notebooks do not move the cursor up: they would show each state of the lines below the last one.
"""

from __future__ import annotations

import re

from ..publish import overwrite

BEGIN, END = "\x1b[?25l", "\x1b[?25h"
"""Hide the cursor, and show it."""
_MOVES = re.compile(r"(\n|\r|\x1b\[\d*[AK])")
_HEIGHT = 50
"""Lines of a drawing that can still change: no program draws above the top of its terminal."""


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; the last is unfinished, and may be a drawing."""
    done = ""
    while BEGIN in text:
        before, _, text = text.partition(BEGIN)
        drawing, ended, after = text.partition(END)
        done += before
        if not ended:
            return _split_drawing(done, drawing)
        done += screen(drawing)[0]
        text = after
    return (done + text).split("\n")


def _split_drawing(before: str, drawing: str) -> list[str]:
    if drawing.count("\n") > 4 * _HEIGHT:
        shown, is_at_end = screen(before.rpartition("\n")[2] + drawing)
        rows = shown.split("\n")
        if is_at_end and len(rows) > 2 * _HEIGHT:
            above = before.split("\n")[:-1] + rows[:-_HEIGHT]
            return [*above, BEGIN + "\n".join(rows[-_HEIGHT:])]
    *lines, begun = before.split("\n")
    return [*lines, begun + BEGIN + drawing]


def row_of(text: str) -> tuple[str, str]:
    """Return what an unfinished line looks like, and a shorter text that looks the same."""
    before, is_drawing, drawing = text.partition(BEGIN)
    if not is_drawing:
        row = overwrite(text)
        return row, row
    shown, is_at_end = screen(before + drawing)
    return shown, BEGIN + shown if is_at_end else text


def screen(text: str) -> tuple[str, bool]:
    """Return the lines that a terminal shows of a text, and whether the cursor is in the last."""
    rows, at = [""], 0
    for part in _MOVES.split(text):
        if part == "\n":
            at += 1
            if at == len(rows):
                rows.append("")
        elif part.startswith("\x1b[") and part.endswith("A") and _MOVES.fullmatch(part):
            at = max(0, at - int(part[2:-1] or 1))
        elif part == "\x1b[2K":
            rows[at] = ""
        elif part:
            rows[at] += part
    while len(rows) > at + 1 and not rows[-1]:
        rows.pop()
    return "\n".join(overwrite(row) for row in rows), at == len(rows) - 1
