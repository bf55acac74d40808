"""The pieces of a merged cell's output in the notebook, and how they look."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from ....common.protocol.jupyter_messages import Content
from ....common.rank_specs import format_ranks
from ..publish import Display, Publication, Text
from .match_lines import Entry

SMALL = 20
"""A piece of text grows up to so many lines: each time, it is drawn again."""
LARGE = 1000
"""Lines of the largest piece of text."""
LONG_RUN = 10
"""The label of so many lines is above them, instead of before each."""

STREAM = "jupyter_dist_stream"
"""Metadata key of text that is drawn again when its labels change: its stream's name."""
KIND = "jupyter_dist_kind"
"""Metadata key of other text of ours: `"label"` of the display below it, or `"bars"`."""

_LIKE_LABEL = re.compile(r"^\[\d[\d,-]*\]", re.MULTILINE)


def members(ranks: int) -> list[int]:
    """Return the ranks whose bits are set."""
    return [rank for rank in range(ranks.bit_length()) if ranks >> rank & 1]


class Labels:
    """Labels such as ``[0-3]``, of equal width."""

    def __init__(self, world_size: int) -> None:
        self._width = len(f"[0-{world_size - 1}]") if world_size > 1 else 3
        self._labels: dict[int, str] = {}

    def plain(self, ranks: int) -> str:
        """Return the label of some ranks."""
        if ranks not in self._labels:
            self._labels[ranks] = f"[{format_ranks(members(ranks))}]"
        return self._labels[ranks]

    def before(self, ranks: int) -> str:
        """Return the label before a line."""
        return self.plain(ranks).ljust(self._width) + " "

    def write(self, runs: list[tuple[int, list[str]]]) -> str:
        """Return lines, given as runs of lines of the same ranks, with their labels."""
        parts = []
        for ranks, lines in runs:
            text = "\n".join(lines) if len(lines) >= LONG_RUN else None
            if text is None or _LIKE_LABEL.search(text):  # it would look like another rank's
                label = self.before(ranks)
                parts += [f"{label}{line}\n" for line in lines]
            else:
                parts += [self.plain(ranks), "\n", text, "\n"]
        return "".join(parts)


class Piece:
    """A display, `drawn` when it was last drawn."""

    def __init__(self, name: str, labels: Labels) -> None:
        self.name = name
        self.drawn = -1.0
        self._labels = labels

    def takes(self, entry: Entry) -> bool:
        """Whether an entry may be inserted."""
        return False

    def is_last(self, entry: Entry) -> bool:
        """Whether an entry is its last one."""
        return True

    def close(self) -> None:
        """Drop what is only needed while entries can change."""

    def remove(self, rank: int) -> bool:
        """Take a rank out; return whether anything is left."""
        raise NotImplementedError

    def draw(self, now: float) -> list[Publication]:
        """Return how it looks."""
        raise NotImplementedError

    def _display(self, now: float, data: Content, metadata: Content) -> Display:
        update, self.drawn = self.drawn >= 0, now
        return Display(data, metadata, self.name, update)


class TextPiece(Piece):
    """Lines of one stream; without a name, they go to the stream itself, for good."""

    def __init__(self, name: str, stream: str, entries: list[Entry], labels: Labels) -> None:
        super().__init__(name, labels)
        self.stream = stream
        self._entries: list[Entry] = []
        self._runs: list[tuple[int, list[str]]] = []
        """What remains of `_entries` when the piece is closed."""
        self.extend(entries)
        if not name:
            self.close()

    def has_room(self, entries: list[Entry]) -> bool:
        """Whether it may grow by these."""
        size = _size(self._entries)
        return bool(self.name) and 0 < size < SMALL and size + _size(entries) <= LARGE

    def takes(self, entry: Entry) -> bool:
        """Whether an entry may be inserted."""
        return bool(self.name) and entry.stream == self.stream and entry.lines is None

    def insert(self, before: Entry, entries: list[Entry]) -> None:
        """Put lines before one of its lines."""
        self._put(self._entries.index(before), 0, entries)

    def replace(self, block: Entry, lines: list[Entry]) -> None:
        """Replace a block by its lines."""
        if block in self._entries:  # a closed piece keeps none
            self._put(self._entries.index(block), 1, lines)

    def extend(self, entries: list[Entry]) -> None:
        """Append lines."""
        self._put(len(self._entries), 0, entries)

    def _put(self, place: int, instead_of: int, entries: list[Entry]) -> None:
        self._entries[place : place + instead_of] = entries
        for entry in entries:
            entry.piece = self

    def is_last(self, entry: Entry) -> bool:
        """Whether an entry is its last one."""
        return bool(self._entries) and self._entries[-1] is entry

    def close(self) -> None:
        """Keep only the text."""
        self._runs, self._entries = self._grouped(), []

    def _grouped(self) -> list[tuple[int, list[str]]]:
        if not self._entries:
            return self._runs
        runs = groupby(self._entries, attrgetter("ranks"))
        return [(ranks, _lines(run)) for ranks, run in runs]

    def remove(self, rank: int) -> bool:
        """Take a rank out; return whether anything is left."""
        keep = ~(1 << rank)
        for entry in self._entries:
            entry.ranks &= keep
        self._entries = [entry for entry in self._entries if entry.ranks]
        self._runs = [(ranks & keep, lines) for ranks, lines in self._runs if ranks & keep]
        return bool(self._entries or self._runs)

    def draw(self, now: float) -> list[Publication]:
        """Return how it looks."""
        text = self._labels.write(self._grouped())
        if not self.name:
            return [Text(self.stream, text)]
        data = {"text/plain": text.removesuffix("\n")}
        if self.stream == "stderr":
            data["application/vnd.jupyter.stderr"] = text
        return [self._display(now, data, {STREAM: self.stream})]


def portions(entries: list[Entry], most: int) -> Iterator[list[Entry]]:
    """Split lines, and blocks that are not larger, into parts of at most so many lines."""
    part: list[Entry] = []
    size = 0
    for entry in entries:
        if size + entry.size > most:
            yield part
            part, size = [], 0
        part.append(entry)
        size += entry.size
    yield part


def _size(entries: list[Entry]) -> int:
    return sum(entry.size for entry in entries)


def _lines(entries: Iterable[Entry]) -> list[str]:
    lines: list[str] = []
    for entry in entries:
        if entry.lines is not None:
            lines += entry.lines
        else:  # on stdout a line is its own key
            key = entry.key if isinstance(entry.key, str) else entry.key[1]
            lines.append(key if entry.payload is None else entry.payload)
    return lines


class RichPiece(Piece):
    """Rich output, with its label above it."""

    def __init__(self, name: str, entry: Entry, labels: Labels) -> None:
        super().__init__(name, labels)
        self._entry = entry
        entry.piece = self

    def remove(self, rank: int) -> bool:
        """Take a rank out; return whether anything is left."""
        self._entry.ranks &= ~(1 << rank)
        return bool(self._entry.ranks)

    def draw(self, now: float) -> list[Publication]:
        """Return how it looks: after the first time, only the label can change."""
        text = {"text/plain": self._labels.plain(self._entry.ranks)}
        label = self._display(now, text, {KIND: "label"})
        return [label] if label.update else [label, self._entry.payload]


class Bars(Piece):
    """Unfinished lines of several ranks, redrawn in place: progress bars."""

    def __init__(self, name: str, labels: Labels) -> None:
        super().__init__(name, labels)
        self.rows: dict[int, str] = {}

    def remove(self, rank: int) -> bool:
        """Take a rank out; return whether anything is left."""
        self.rows.pop(rank, None)
        return bool(self.rows)

    def draw(self, now: float) -> list[Publication]:
        """Return how it looks."""
        rows: dict[str, int] = {}
        for rank, row in sorted(self.rows.items()):
            rows[row] = rows.get(row, 0) | 1 << rank
        text = "\n".join(
            self._labels.before(ranks) + line
            for row, ranks in rows.items()
            for line in row.split("\n")
        )
        return [self._display(now, {"text/plain": text}, {KIND: "bars"})]
