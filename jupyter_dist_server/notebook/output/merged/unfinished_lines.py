"""Lines that ranks have begun but not ended: prompts, progress bars, and drawings.

A drawing is several lines that a program redraws, such as several progress bars. It moves the
cursor up to draw the lines anew; rich hides the cursor before, and shows it again when it is done.
tqdm does not: its drawing ends when the cursor is in an empty line below it. Notebooks do not move
the cursor up: they would show each state of the lines below the last one.
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
_UP = "\x1b[A"
"""How tqdm goes to the line above."""
_UNHIDDEN = f"{BEGIN}\x1b[0;0m"
"""Our mark at the begin of a drawing whose program hides no cursor."""
_MOVES = re.compile(r"(\n|\r|\x1b\[\d*[AK])")
_PART_OF_A_MOVE = re.compile(r"\x1b(\[\d*)?$")
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
        before = "".join(self._parts.get(place, ()))
        if _UNHIDDEN in before and _goes_on_below(before, text):
            self.end(place)
            return [*screen(before)[0][:-1], *self.split(place, text)]
        if BEGIN not in before and not _begins_drawing(before, text):
            return split_lines(text)
        since = self._since.get(place)
        self.end(place)
        *lines, rest = split_lines(before + text if BEGIN in before else _mark(before + text))
        if not lines and rest and since is not None:
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


def _begins_drawing(before: str, text: str) -> bool:
    """Tell whether a program that hides no cursor goes up, or is likely to do so next."""
    if _UP in text:
        return True
    if "\r" not in before and "\r" not in text:
        return False
    above, line_end, row = text.rpartition("\n")  # what follows a progress bar may be another one
    is_below_bar = "\r" in (before + above).rpartition("\n")[2].rstrip("\r")  # not in "\r\n"
    return bool(line_end) and is_below_bar and row[:1] in ("", "\r")


def _mark(text: str) -> str:
    """Mark the line in which a drawing begins: the one that the cursor goes up to, or may."""
    above = text.partition(_UP)[0].rpartition("\n")[0]
    begin = above.rfind("\n") + 1
    return f"{text[:begin]}{_UNHIDDEN}{text[begin:]}"


def _goes_on_below(drawing: str, text: str) -> bool:
    """Tell whether a program has ended its drawing: it writes into an empty line below it."""
    rows, at = screen(drawing)
    is_below = at == len(rows) - 1 and not rows[at]
    return (
        is_below
        and not text.startswith((_UP, END))
        and not (text[:1] in ("", "\r") and _UP in text)
    )


def split_lines(text: str) -> list[str]:
    """Return the lines of a text; the last is unfinished, and may be a drawing."""
    done = ""
    while BEGIN in text:
        before, _, text = text.partition(BEGIN)
        drawing, ended, after = text.partition(END)
        done += before
        if not ended:
            return _split_drawing(done, drawing)
        done += "\n".join(screen(BEGIN + drawing)[0])
        text = after
    return (done + text).split("\n")


def _split_drawing(before: str, drawing: str) -> list[str]:
    *lines, begun = before.split("\n")
    if drawing.count("\n") > 4 * _HEIGHT:
        rows, at = screen(begun + BEGIN + drawing)
        if at == len(rows) - 1 and len(rows) > 2 * _HEIGHT:
            rest = "\n".join(rows[-_HEIGHT:])
            return [*lines, *rows[:-_HEIGHT], _mark_of(drawing) + rest]
    return [*lines, begun + BEGIN + drawing]


def row_of(text: str) -> tuple[str, str]:
    """Return what an unfinished line looks like, and a shorter text that looks the same."""
    _, is_drawing, drawing = text.partition(BEGIN)
    if not is_drawing:
        row = overwrite(text)
        return row, row
    rows, at = screen(text)
    shown = "\n".join(rows)
    if _PART_OF_A_MOVE.search(drawing):
        return shown, text
    return shown, f"{_mark_of(drawing)}{shown}{_UP * (len(rows) - 1 - at)}"


def _mark_of(drawing: str) -> str:
    return _UNHIDDEN if f"{BEGIN}{drawing}".startswith(_UNHIDDEN) else BEGIN


def screen(text: str) -> tuple[list[str], int]:
    """Return the lines that a terminal shows of a text, and in which the cursor is."""
    rows, at = [""], 0
    for part in _MOVES.split(text.replace(_UNHIDDEN, "").replace(BEGIN, "")):
        if part == "\n":
            at += 1
            if at == len(rows):
                rows.append("")
            elif rows[at]:
                rows[at] += "\r"
        elif part.startswith("\x1b[") and part.endswith("A") and _MOVES.fullmatch(part):
            at = max(0, at - int(part[2:-1] or 1))
        elif part == "\x1b[2K":
            rows[at] = ""
        elif part:
            rows[at] += part
    while len(rows) > at + 1 and not rows[-1]:
        rows.pop()
    return [overwrite(row) for row in rows], at
