"""Merges what N ranks show: identical output appears once, marked with its ranks.

A `Merger` takes outputs by rank and returns what to publish. It has no clock and publishes nothing
itself, so every interleaving can be tested. Its cost is linear in the output, except for
`clear_output`, which shows again all that stays.

Text that no other rank can show any more goes to the notebook's stream. Other text is a display,
which is drawn again when a late rank shows the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby, zip_longest
from math import inf
from operator import attrgetter

from ....common.protocol.jupyter_messages import Content
from ..publish import Clear, Display, Publication, join_texts, overwrite, own_id, plain_text
from ..without_addresses import alike, may_vary, shape_of
from .match_lines import OPEN, Entry, MergedLog
from .shown_pieces import LARGE, Bars, Labels, Piece, RichPiece, TextPiece, portions
from .unfinished_lines import UnfinishedLines

WINDOW = 0.04
"""How long a thing waits for other ranks to show the same before it is drawn, in seconds."""
REDRAW_EVERY = 0.1
"""Seconds between two updates of the same display."""
_FLOOD = 4000
"""So many lines are drawn at once."""
_FEW = 8
"""Of so many lines that come together, each is sorted by its shape; more take too long."""
_BLOCK = 100
"""So many new lines or more that come together are one entry."""


class Merger:
    """Merges the outputs of one cell, whose displays have names that begin with `cell`.

    Without `updates`, displays cannot be drawn again, as in a terminal.
    """

    def __init__(
        self, ranks: Iterable[int], world_size: int, cell: str = "", updates: bool = True
    ) -> None:
        self.ranks = sorted(ranks)
        self.errors: list[tuple[list[int], Content]] = []
        """Each different error with its ranks, in order of arrival."""
        self._cell = cell
        self._updates = updates
        self._labels = Labels(world_size)
        self._log = MergedLog(self.ranks)
        self._pieces: list[Piece] = []
        self._changed: list[Piece] = []
        self._displays: dict[str, Display] = {}
        """Those that may be updated, by their ID in the notebook."""
        self._unfinished = UnfinishedLines()
        self._bars: tuple[Bars, Entry] | None = None
        self._clear_before_next: set[int] = set()
        self._redraw, self._last_redraw = False, -1.0
        self._names = 0
        self._out: list[Publication] = []

    # -- what comes in ----------------------------------------------------------------------

    def feed(self, rank: int, kind: str, content: Content, now: float) -> None:
        """Take one output of a rank, a Jupyter message of type `kind`, arriving at time `now`."""
        if kind == "clear_output":
            self._clear_before_next.add(rank)
            if not content.get("wait"):
                self._clear(rank)
            return
        if rank in self._clear_before_next:
            self._clear(rank)
        if kind == "stream":
            self._feed_text(rank, content["name"], content["text"], now)
            return
        self._finish_lines(rank, now)
        if kind == "error":
            self._add_error(rank, content)
        elif kind == "update_display_data":
            own = own_id(rank, content)
            display = Display(content["data"], content.get("metadata", {}), own, update=True)
            if own and (shown := self._displays.get(own)):
                shown.data, shown.metadata = display.data, display.metadata
            self._out.append(display)
        elif (text := plain_text(rank, content)) is not None:
            lines = text.split("\n")
            self._add(rank, [Entry(line, 1 << rank, now, stream="stdout") for line in lines])
        else:
            self._add(rank, [self._read_rich(rank, content, now)])

    def finish(self, rank: int, now: float) -> None:
        """Note that a rank has finished the cell."""
        self._finish_lines(rank, now)
        self._log.finish(rank)

    def _feed_text(self, rank: int, stream: str, text: str, now: float) -> None:
        place = rank, stream
        *lines, rest = self._unfinished.split(place, text)
        if lines:
            lines[0] = self._unfinished.end(place) + lines[0]
        if lines and (bars := self._unfinished.bars.pop(place, None)):
            self._set_row(bars, rank, overwrite(lines.pop(0)))
        if "\r" in text or (lines and "\r" in lines[0]):
            lines = [overwrite(line) for line in lines]
        bit = 1 << rank
        if may_vary(text) or len(lines) <= _FEW:
            self._add(rank, [self._line(rank, stream, line, now) for line in lines])
        elif len(lines) >= _BLOCK and stream == "stdout" and self._log.is_new(lines):
            blocks = [lines[at : at + LARGE] for at in range(0, len(lines), LARGE)]
            entries = [Entry("", bit, now, stream=stream, lines=block) for block in blocks]
            self._log.add_new(rank, entries)
        elif stream == "stdout":
            self._add(rank, [Entry(line, bit, now, stream=stream) for line in lines])
        else:
            self._add(rank, [Entry((stream, line), bit, now, stream=stream) for line in lines])
        if rest:
            self._unfinished.add(place, rest, now)

    def _line(self, rank: int, stream: str, line: str, now: float) -> Entry:
        """Return a line with what other ranks may show instead: another address, another number."""
        common = alike(line) if may_vary(line) else line
        key = common if stream == "stdout" else (stream, common)
        payload = line if common != line else None
        return Entry(key, 1 << rank, now, payload, shape_of(common, rank), stream)

    def _finish_lines(self, rank: int, now: float) -> None:
        for place in self._unfinished.of(rank):
            self._feed_text(rank, place[1], self._unfinished.ending(place), now)

    def _add(self, rank: int, items: list[Entry]) -> None:
        changed = self._log.add(rank, items)
        for piece in {id(entry.piece): entry.piece for entry in changed if entry.piece}.values():
            self._touch(piece)

    def _touch(self, piece: Piece) -> None:
        if piece not in self._changed:
            self._changed.append(piece)

    def _read_rich(self, rank: int, content: Content, now: float) -> Entry:
        own = own_id(rank, content)
        display = Display(content["data"], content.get("metadata", {}), own)
        if own:
            self._displays[own] = display
        # Displays with an ID are not merged: their later states may differ.
        key = own or json.dumps(content["data"], sort_keys=True)
        return Entry(("display", key), 1 << rank, now, display)

    def _add_error(self, rank: int, content: Content) -> None:
        common = _common_parts(content)
        for ranks, error in self.errors:
            if _common_parts(error) == common and error["ename"] == content["ename"]:
                if error["traceback"] != content["traceback"]:
                    error |= common
                ranks.append(rank)
                return
        self.errors.append(([rank], content))

    def _clear(self, rank: int) -> None:
        self._clear_before_next.discard(rank)
        self._unfinished.forget(rank)
        self._draw_new(inf)  # what is not drawn yet is cleared too
        self._log.close(len(self._log.entries))
        self._bars = None
        self._pieces = [piece for piece in self._pieces if piece.remove(rank)]
        self._redraw = True

    # -- what goes out ----------------------------------------------------------------------

    def take(self, now: float, last: bool = False) -> list[Publication]:
        """Return what to publish now; with `last`, everything that is left."""
        if last:
            for rank in self.ranks:
                self.finish(rank, now)
        return self._take(now, last)

    def take_all(self, rank: int, now: float) -> list[Publication]:
        """Return all there is, also unfinished lines of a rank, which asks a question now."""
        if not self._updates:
            self._finish_lines(rank, now)
        return self._take(now, everything=True)

    def _take(self, now: float, everything: bool) -> list[Publication]:
        self._draw_new(inf if everything else now)
        self._show_unfinished(now, everything)
        if self._redraw and (everything or now - self._last_redraw >= REDRAW_EVERY):
            self._draw_again(now)
        elif not self._redraw:
            self._draw_changed(now, everything)
        else:
            return []
        self._close_settled()
        published, self._out = self._out, []
        return join_texts(published)

    def next_time(self, now: float) -> float | None:
        """Return when to call `take` again if nothing arrives; `None` is never."""
        times = [*self._unfinished.due(), *(piece.drawn + REDRAW_EVERY for piece in self._changed)]
        if self._redraw:
            times.append(self._last_redraw + REDRAW_EVERY)
        if self._log.drawn < len(self._log.entries):
            times.append(self._log.entries[self._log.drawn].since + WINDOW)
        return min(times, default=None)

    def _draw_new(self, now: float) -> None:
        """Put new entries into the notebook, except those that another rank may show soon."""
        entries, drawn = self._log.entries, self._log.drawn
        settled = max(self._log.settled, drawn)
        end = len(entries)
        if sum(entry.size for entry in entries[drawn:]) < _FLOOD:
            while end > settled and entries[end - 1].since + WINDOW > now:
                end -= 1
        fixed = min(settled, end) if self._updates else end
        for first, stop, is_fixed in ((drawn, fixed, True), (fixed, end, False)):
            for stream, run in groupby(entries[first:stop], attrgetter("stream")):
                if stream is None:
                    for entry in run:
                        self._put(RichPiece(self._name("label"), entry, self._labels))
                else:
                    self._put_lines(stream, list(run), is_fixed)
        self._log.drawn = end

    def _put_lines(self, stream: str, lines: list[Entry], fixed: bool) -> None:
        if fixed:
            self._put(TextPiece("", stream, lines, self._labels))
            return
        last = self._pieces[-1] if self._pieces else None
        for part in portions(lines, LARGE):
            if isinstance(last, TextPiece) and last.stream == stream and last.has_room(part):
                last.extend(part)
                self._touch(last)
            else:
                self._put(TextPiece(self._name("text"), stream, part, self._labels))
            last = None

    def _put(self, piece: Piece) -> None:
        self._pieces.append(piece)
        self._touch(piece)

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{self._cell}-{kind}-{self._names}"

    def _draw_changed(self, now: float, everything: bool) -> None:
        waiting, self._changed = self._changed, []
        for piece in waiting:
            if everything or piece.drawn < 0 or now >= piece.drawn + REDRAW_EVERY:
                self._out += piece.draw(now)
            else:
                self._changed.append(piece)

    def _draw_again(self, now: float) -> None:
        self._out = [Clear()]
        self._changed.clear()
        for piece in self._pieces:
            piece.drawn = -1.0
            self._out += piece.draw(now)
        self._redraw, self._last_redraw = False, now

    def _close_settled(self) -> None:
        count = min(self._log.settled, self._log.drawn) if self._updates else self._log.drawn
        count = max(count, min(self._log.drawn, self._log.beyond(OPEN)))
        closed = self._log.close(count)
        for entry, next_one in zip_longest(closed, closed[1:]):
            piece = entry.piece
            ends = next_one is None or next_one.piece is not piece
            if ends and piece.is_last(entry) and piece not in self._changed:
                piece.close()

    # -- unfinished lines -------------------------------------------------------------------

    def _show_unfinished(self, now: float, everything: bool) -> None:
        if not self._updates or self._log.drawn < len(self._log.entries):
            return  # earlier output comes first
        for place in self._unfinished.shown(now, everything):
            rank, row = place[0], self._unfinished.row(place)
            bars = self._unfinished.bars.get(place)
            if bars is None:
                bars = self._unfinished.bars[place] = self._bars_for(rank, now)
            if bars.rows.get(rank) != row:
                self._set_row(bars, rank, row)

    def _bars_for(self, rank: int, now: float) -> Bars:
        """Return bars that a rank may join without changing the order of its output."""
        if self._bars and rank not in self._bars[0].rows:
            bars, entry = self._bars
            if not self._log.passed(rank, entry):
                self._log.join(rank, entry)
                return bars
        bars = Bars(self._name("bars"), self._labels)
        entry = Entry(("bars", bars.name), 1 << rank, now, bars)
        entry.piece = bars
        self._log.append(rank, entry)
        self._log.drawn += 1
        self._pieces.append(bars)
        self._bars = bars, entry
        return bars

    def _set_row(self, bars: Bars, rank: int, row: str) -> None:
        bars.rows[rank] = row
        self._touch(bars)


def _common_parts(error: Content) -> Content:
    """Return what ranks with this error share."""
    traceback = [alike(part) for part in error["traceback"]]
    return {"evalue": alike(error["evalue"]), "traceback": traceback}
