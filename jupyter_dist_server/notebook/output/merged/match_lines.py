"""One sequence of what several ranks show: each thing once, with the ranks that show it.

Each rank has a cursor behind the last thing that it showed. What it shows next is searched behind
its cursor: if found, it is the same thing, otherwise a new one. So each rank's order is kept,
whatever is merged, and however late a rank is. Things that every running rank has passed, and the
oldest of very many, are closed: nothing joins them any more.

The order of arrival says little about several ranks: a new thing goes before what higher ranks have
shown in the same step. A thing is in the same step if it came at most two seconds earlier, and
nearer in time to the new thing than to the end of this rank's previous burst. Lines with a `shape`
tell their step better than their time does: those of one shape are one step.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, NamedTuple

Key = str | tuple[str, str]
"""What makes two things alike: a line of stdout is its own key, others include their kind."""

OPEN = 20_000
"""How many shown things a late rank may join."""
_AHEAD = 2000
"""How far behind a rank's cursor things are searched."""

_SHORT = 200
"""Up to how many things shown at the same time are sorted by rank."""
_LAST_SHAPES = 50
_TOGETHER = 2.0
"""What ranks show within so many seconds counts as shown at the same time."""
_BURST = 0.1
"""What a rank shows within so many seconds is one burst."""


@dataclass(eq=False, slots=True)
class Entry:
    """One thing that ranks show, or a block of lines until another rank shows one of them."""

    key: Key
    ranks: int
    """Bit r is set if rank r shows it."""
    since: float
    payload: Any = None
    """What is shown instead of `key`; for a line, until ranks show it with different addresses."""
    shape: str | None = None
    """A line without what is the rank's own, such as its number: the same on ranks in one step."""
    stream: str | None = None
    """A line's stream; `None` if it is not a line."""
    lines: list[str] | None = None
    """Those of a block, each its own key; the block's `key` is unused."""
    piece: Any = None
    """Where in the notebook it is; `None` until it is there."""

    @property
    def keys(self) -> Sequence[Key]:
        """What other ranks may show, too."""
        return (self.key,) if self.lines is None else self.lines

    @property
    def size(self) -> int:
        """How many things it is."""
        return 1 if self.lines is None else len(self.lines)

    def show_what_is_common(self, other: Entry) -> None:
        """Show the key of a line that another rank shows otherwise."""
        if self.stream is not None and self.payload != other.payload:
            self.payload = None

    def split(self) -> list[Entry]:
        """Return the lines of a block one by one."""
        parts = [Entry(line, self.ranks, self.since, stream=self.stream) for line in self.keys]
        if self.piece:
            self.piece.replace(self, parts)
        return parts


class Burst(NamedTuple):
    """What a rank shows at one time."""

    begun: float = -inf
    latest: float = -inf
    before: float = -inf
    """When the burst before it ended."""


class MergedLog:
    """The sequence."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self.entries: list[Entry] = []
        """Those that are still open."""
        self.drawn = 0
        """How many of them, the first ones, are in the notebook."""
        self.size = 0
        """How many things they are: each line of a block is one."""
        self._has_blocks = False
        self._known: Counter[Key] = Counter()
        """The keys of `entries`."""
        self._running = set(ranks)
        self._cursors = dict.fromkeys(self._running, 0)
        self._bursts = dict.fromkeys(self._running, Burst())
        self._shapes: defaultdict[int, deque[str]] = defaultdict(
            partial(deque, maxlen=_LAST_SHAPES)
        )
        """By rank, those that it has shown last."""

    @property
    def settled(self) -> int:
        """How many of the entries no running rank can join any more."""
        cursors = (self._cursors[rank] for rank in self._running)
        return min(cursors, default=len(self.entries))

    def finish(self, rank: int) -> None:
        """Note that a rank shows nothing more."""
        self._running.discard(rank)

    def passed(self, rank: int, entry: Entry) -> bool:
        """Whether a rank has shown something after an entry, or the entry is closed."""
        return entry not in self.entries[max(0, self._cursors[rank] - 1) :]

    def join(self, rank: int, entry: Entry) -> None:
        """Let a rank show an entry that it has not passed."""
        entry.ranks |= 1 << rank
        cursor = self._cursors[rank]
        self._cursors[rank] = max(cursor, self.entries.index(entry, max(0, cursor - 1)) + 1)

    def append(self, rank: int, entry: Entry) -> None:
        """Add a thing of one rank that is like no other."""
        self._insert(len(self.entries), [entry])
        self._cursors[rank] = len(self.entries)

    def is_new(self, keys: Sequence[Key]) -> bool:
        """Whether nothing in the log is like any of these."""
        return self._known.keys().isdisjoint(keys)

    def add_new(self, rank: int, entries: list[Entry]) -> None:
        """Add things of one rank, blocks of lines among them, that are all new."""
        self._note_burst(rank, entries[0].since)
        place = self._place(rank, self._cursors[rank], len(self.entries), entries)
        self._insert(place, entries)
        self._cursors[rank] = place + len(entries)

    def add(self, rank: int, items: list[Entry]) -> list[Entry]:
        """Merge what a rank shows next, no blocks; return what may be drawn now."""
        if not items:
            return []
        self._note_burst(rank, items[0].since)
        if self._has_blocks and not self.is_new([item.key for item in items]):
            self._split_blocks()
        at = self._cursors[rank]
        joined: list[Entry] = []
        straight = min(len(self.entries) - at, len(items))
        while len(joined) < straight and self.entries[at].key == items[len(joined)].key:
            if items[len(joined)].payload is not None:
                self.entries[at].show_what_is_common(items[len(joined)])
            joined.append(self.entries[at])
            at += 1
        rest = items[len(joined) :]
        if not self.is_new([item.key for item in rest]):
            at, rest = self._find(rank, at, rest, joined)
        bit = 1 << rank
        for entry in joined:
            entry.ranks |= bit
        if rest:
            place = self._place(rank, at, len(self.entries), rest)
            self._insert(place, rest)
            at = place + len(rest)
        self._cursors[rank] = at
        return joined + items

    def _note_burst(self, rank: int, now: float) -> None:
        burst = self._bursts[rank]
        if now - burst.begun > _BURST:
            self._bursts[rank] = Burst(begun=now, latest=now, before=burst.latest)
        else:
            self._bursts[rank] = Burst(burst.begun, now, burst.before)

    def _place(self, rank: int, first: int, last: int, new: list[Entry]) -> int:
        """Return a place between two for what is new: before what higher ranks just showed."""
        shape, shapes = new[0].shape, self._shapes[rank]
        if shape is not None and shape not in shapes:  # a shape of each step tells none
            beside = self._beside_its_like(rank, first, last, shape)
            shapes.extend(entry.shape for entry in new if entry.shape is not None)
            if beside is not None and (beside == last or self._accepts(beside, new)):
                return beside
        now, place = new[0].since, last
        same_step = max(now - _TOGETHER, (now + self._bursts[rank].before) / 2)
        while place > max(first, last - _SHORT):
            entry = self.entries[place - 1]
            is_before = entry.shape != shape and entry.shape in shapes
            if is_before or entry.ranks & ((2 << rank) - 1):
                break
            if entry.piece and (entry.since < same_step or not self._accepts(place - 1, new)):
                break
            place -= 1
        return last if last - place == _SHORT else place

    def _beside_its_like(self, rank: int, first: int, last: int, shape: str) -> int | None:
        """Return the place of a line in the first step behind the cursor that has its like."""
        end, seen = None, 0
        for place in range(max(first, last - _SHORT), last):
            entry = self.entries[place]
            if entry.shape != shape:
                continue
            if entry.ranks & seen:  # of the next step
                break
            seen |= entry.ranks
            if entry.ranks & -entry.ranks > 1 << rank:
                return place
            end = place + 1
            while end < last and self.entries[end].ranks == entry.ranks:
                end += 1
        return end

    def _find(
        self, rank: int, at: int, items: list[Entry], joined: list[Entry]
    ) -> tuple[int, list[Entry]]:
        """Search things further on; return the new cursor, and what follows the last one found."""
        places: dict[Key, list[int]] = {}
        for place in range(at, min(at + _AHEAD, len(self.entries))):
            places.setdefault(self.entries[place].key, []).append(place)
        new: list[Entry] = []
        inserted: list[tuple[int, list[Entry]]] = []
        for item in items:
            same = places.get(item.key, [])
            nth = bisect_left(same, at)
            if nth < len(same) and (not new or self._accepts(same[nth], new)):
                if new:
                    inserted.append((self._place(rank, at, same[nth], new), new))
                    new = []
                self.entries[same[nth]].show_what_is_common(item)
                joined.append(self.entries[same[nth]])
                at = same[nth] + 1
            else:
                new.append(item)
        for place, entries in reversed(inserted):
            self._insert(place, entries)
        return at + sum(len(entries) for _, entries in inserted), new

    def _accepts(self, place: int, new: list[Entry]) -> bool:
        """Whether things can go before an entry: only text into text that can be drawn again."""
        piece = self.entries[place].piece
        return piece is None or all(piece.takes(entry) for entry in new)

    def _insert(self, place: int, entries: list[Entry]) -> None:
        if place < self.drawn:  # it is drawn with the lines around it
            self.entries[place].piece.insert(self.entries[place], entries)
            self.drawn += len(entries)
        self.entries[place:place] = entries
        keys = _keys(entries)
        self._known.update(keys)
        self.size += len(keys)
        self._has_blocks = self._has_blocks or any(entry.lines for entry in entries)
        for rank, cursor in self._cursors.items():
            if cursor > place:
                self._cursors[rank] = cursor + len(entries)

    def beyond(self, most: int) -> int:
        """Return how many of the first entries are in excess of so many things."""
        excess, count = self.size - most, 0
        while excess > 0:
            excess -= self.entries[count].size
            count += 1
        return count

    def close(self, count: int) -> list[Entry]:
        """Take out the first entries: nothing joins them any more."""
        closed, self.entries = self.entries[:count], self.entries[count:]
        keys = _keys(closed)
        for key in keys:
            if others := self._known.pop(key) - 1:
                self._known[key] = others
        self.size -= len(keys)
        self.drawn = max(0, self.drawn - count)
        self._cursors = {rank: max(0, at - count) for rank, at in self._cursors.items()}
        return closed

    def _split_blocks(self) -> None:
        """Make each line of each block an entry that another rank can join."""
        places = [0]
        entries: list[Entry] = []
        for entry in self.entries:
            entries += [entry] if entry.lines is None else entry.split()
            places.append(len(entries))
        self.entries, self.drawn, self._has_blocks = entries, places[self.drawn], False
        self._cursors = {rank: places[at] for rank, at in self._cursors.items()}


def _keys(entries: list[Entry]) -> list[Key]:
    keys: list[Key] = []
    for entry in entries:
        keys += entry.keys
    return keys
