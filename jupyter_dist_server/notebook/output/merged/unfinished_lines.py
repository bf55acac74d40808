"""Lines that ranks have begun but not ended: prompts, and progress bars."""

from __future__ import annotations

from collections.abc import Iterator

from .drawings import BEGIN, END, row_of, split_lines
from .shown_pieces import Bars

PROMPT_AFTER = 0.5
"""Seconds after which any unfinished line is shown."""
_LONGEST = 2000
"""The last so many characters of an unfinished line are drawn while it grows."""

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
