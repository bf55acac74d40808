"""Lines that ranks have begun but not ended: prompts, progress bars, and drawings.

A drawing is several lines that a program redraws, such as several progress bars of rich. It hides
the cursor, moves it up to draw the lines anew, and shows it again when it is done. Notebooks do not
move the cursor up: they would show each state of the lines below the last one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..publish import overwrite
from .shown_pieces import Bars

PROMPT_AFTER = 0.5
"""Seconds after which any unfinished line is shown."""
_LONGEST = 2000
"""The last so many characters of an unfinished line are drawn while it grows."""

BEGIN, END = "\x1b[?25l", "\x1b[?25h"
"""Hide the cursor, and show it."""
_MOVES = re.compile(r"(\n|\r|\x1b\[\d*[AK])")
_HEIGHT = 50
"""Lines of a drawing that can still change: no program draws above the top of its terminal."""

Place = tuple[int, str]
"""A rank and its stream."""


class UnfinishedLines:
    """The unfinished line of each stream of each rank."""

    def __init__(self) -> None:
        self.bars: dict[Place, Bars] = {}
        """Where lines are shown that are shown already."""
        self._parts: dict[Place, list[str]] = {}
        self._since: dict[Place, float] = {}

    def add(self, place: Place, text: str, now: float) -> None:
        """Add to a line."""
        self._parts.setdefault(place, []).append(text)
        self._since.setdefault(place, now)

    def split(self, place: Place, text: str) -> list[str]:
        """Return the lines that a text ends, and the rest; both include a drawing before it."""
        if not self._is_drawing(place):
            return split_lines(text)
        since = self._since[place]
        *lines, rest = split_lines(self.end(place) + text)
        if not lines:
            self._since[place] = since
        return [*lines, rest]

    def ending(self, place: Place) -> str:
        """Return what ends a line."""
        if not self._is_drawing(place):
            return "\n"
        return END if self._parts[place][-1].endswith("\n") else f"{END}\n"

    def _is_drawing(self, place: Place) -> bool:
        return BEGIN in self._parts.get(place, ("",))[-1]

    def end(self, place: Place) -> str:
        """Return and forget a line that ends now."""
        self._since.pop(place, None)
        return "".join(self._parts.pop(place, ()))

    def of(self, rank: int) -> list[Place]:
        """Return where a rank has an unfinished line."""
        return [place for place in self._parts if place[0] == rank]

    def forget(self, rank: int) -> None:
        """Drop the lines of a rank."""
        for place in self.of(rank):
            self.end(place)
            self.bars.pop(place, None)

    def shown(self, now: float, everything: bool) -> Iterator[Place]:
        """Yield the lines that are shown, or should be by now; with `everything`, all."""
        for place, since in self._since.items():
            if everything or place in self.bars or now - since >= self._delay(place):
                yield place

    def row(self, place: Place) -> str:
        """Return what a line looks like."""
        row, kept = row_of("".join(self._parts[place]))
        self._parts[place] = [kept]
        return row if len(row) <= _LONGEST else f"…{row[-_LONGEST:]}"

    def due(self) -> Iterator[float]:
        """Yield when hidden lines should be shown."""
        for place, since in self._since.items():
            if place not in self.bars:
                yield since + self._delay(place)

    def _delay(self, place: Place) -> float:
        is_bar = any("\r" in part or BEGIN in part for part in self._parts[place])
        return 0.15 if is_bar else PROMPT_AFTER


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
