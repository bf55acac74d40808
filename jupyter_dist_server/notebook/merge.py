"""Merge what N ranks show into what a notebook shows: identical output once, marked with its ranks.

A `Merger` takes outputs by rank and gives back what to publish. It knows no clock and publishes
nothing itself, so every interleaving can be tested. Its cost is linear in the output,
but for `clear_output`, which shows again all that stays.

Output of a rank waits a moment for the other ranks to show the same. Within a rank the order is
kept, whatever is merged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..pools.ranks import format_ranks
from .align import Aligner, Item
from .publication import Clear, Display, Publication, Text, join_texts, overwrite

LIVE_AFTER = 0.15
"""Seconds after which an unfinished line that is being redrawn (a progress bar) is shown."""
PROMPT_AFTER = 0.5
"""Seconds after which any unfinished line is shown."""
REDRAW_EVERY = 0.1
"""Seconds between two updates of the same display."""


@dataclass
class _Entry:
    """One thing in the notebook, with the ranks that show it."""

    ranks: set[int]
    item: Item
    position: int


@dataclass
class _Block:
    """Unfinished lines of several ranks, redrawn in place: progress bars."""

    position: int
    rows: dict[int, str] = field(default_factory=dict)
    drawn: float = -1.0


class Merger:
    """Merge the outputs of one cell.

    Parameters
    ----------
    ranks : iterable of int
        Where the cell runs.
    world_size : int
        Number of ranks in the pool; makes all labels equally wide.
    """

    def __init__(self, ranks: Iterable[int], world_size: int, cell: str = "") -> None:
        self.ranks = sorted(ranks)
        self.errors: list[tuple[list[int], dict[str, Any]]] = []
        """Each different error with its ranks, in order of arrival."""
        self._cell = cell
        self._width = len(f"[0-{world_size - 1}]") if world_size > 1 else 3
        self._aligner = Aligner(self.ranks)
        self._partial: dict[tuple[int, str], list[str]] = {}
        self._partial_since: dict[tuple[int, str], float] = {}
        self._entries: list[_Entry | _Block] = []
        self._position = 0
        self._shown_at = dict.fromkeys(self.ranks, 0)
        """Position of the last entry that each rank shows."""
        self._rich: dict[tuple[str, str], _Entry] = {}
        self._open_block: _Block | None = None
        self._undrawn: list[_Block] = []
        self._live: dict[tuple[int, str], _Block] = {}
        self._clear_before_next: set[int] = set()
        self._redraw = False
        self._last_redraw = -1.0
        self._out: list[Publication] = []

    # -- what comes in ----------------------------------------------------------------------

    def feed(self, rank: int, kind: str, content: dict[str, Any], now: float) -> None:
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
            self._update(rank, content)
        elif set(content["data"]) == {"text/plain"} and not _display_id(content):
            for line in content["data"]["text/plain"].split("\n"):
                self._aligner.push(rank, Item(("stdout", line), line, now))
        else:
            self._aligner.push(rank, self._read_rich(rank, content, now))

    def finish(self, rank: int, now: float) -> None:
        """Note that a rank has finished the cell."""
        self._finish_lines(rank, now)
        self._aligner.finish(rank)

    def _feed_text(self, rank: int, stream: str, text: str, now: float) -> None:
        place = rank, stream
        *lines, rest = text.split("\n")
        for line in lines:
            whole = "".join([*self._partial.pop(place, []), line])
            self._partial_since.pop(place, None)
            self._add_line(place, whole, now)
        if rest:
            self._partial.setdefault(place, []).append(rest)
            self._partial_since.setdefault(place, now)

    def _finish_lines(self, rank: int, now: float) -> None:
        for place in [place for place in self._partial if place[0] == rank]:
            self._add_line(place, "".join(self._partial.pop(place)), now)
            del self._partial_since[place]

    def _add_line(self, place: tuple[int, str], line: str, now: float) -> None:
        rank, stream = place
        line = overwrite(line)
        if block := self._live.pop(place, None):
            self._set_row(block, rank, line)
        else:
            self._aligner.push(rank, Item((stream, line), line, now))

    def _read_rich(self, rank: int, content: dict[str, Any], now: float) -> Item:
        display_id = _display_id(content)
        own = f"{self._cell}-{rank}-{display_id}" if display_id else None
        display = Display(content["data"], content.get("metadata", {}), own)
        # Displays that will be updated stay apart: their later states may differ.
        key = own or json.dumps(content["data"], sort_keys=True)
        return Item(("display", key), display, now)

    def _add_error(self, rank: int, content: dict[str, Any]) -> None:
        for ranks, known in self.errors:
            if known["traceback"] == content["traceback"] and known["ename"] == content["ename"]:
                ranks.append(rank)
                return
        self.errors.append(([rank], content))

    def _update(self, rank: int, content: dict[str, Any]) -> None:
        display_id = f"{self._cell}-{rank}-{content['transient']['display_id']}"
        display = Display(content["data"], content.get("metadata", {}), display_id, update=True)
        if entry := self._rich.get(("display", display_id)):
            entry.item.payload.data = display.data
            entry.item.payload.metadata = display.metadata
        for item in self._aligner.waiting(rank):
            if item.key == ("display", display_id):
                item.payload = Display(display.data, display.metadata, display_id)
        self._out.append(display)

    def _clear(self, rank: int) -> None:
        self._clear_before_next.discard(rank)
        self._aligner.clear(rank)
        for place in [place for place in self._partial if place[0] == rank]:
            del self._partial[place], self._partial_since[place]
            self._live.pop(place, None)
        for entry in self._entries:
            if isinstance(entry, _Block):
                entry.rows.pop(rank, None)
            else:
                entry.ranks.discard(rank)
        self._open_block = None
        self._rich = {key: entry for key, entry in self._rich.items() if entry.ranks}
        self._entries = [
            entry
            for entry in self._entries
            if (entry.rows if isinstance(entry, _Block) else entry.ranks)
        ]
        self._redraw = True

    # -- what goes out ----------------------------------------------------------------------

    def take(self, now: float, last: bool = False) -> list[Publication]:
        """Return what is to be published now; with `last`, everything that is left."""
        if last:
            for rank in self.ranks:
                self.finish(rank, now)
        self._merge(now)
        self._show_unfinished(now)
        if self._redraw and (last or now - self._last_redraw >= REDRAW_EVERY):
            self._draw_again(now)
        elif not self._redraw:
            self._draw_blocks(now, last)
        else:
            return []
        published, self._out = self._out, []
        return join_texts(published)

    def next_time(self, now: float) -> float | None:
        """Return when `take` should be called again if nothing arrives; `None` is never."""
        times = [
            since + self._patience(place)
            for place, since in self._partial_since.items()
            if place not in self._live
        ]
        if self._undrawn:
            times.append(now + REDRAW_EVERY)
        if self._redraw:
            times.append(self._last_redraw + REDRAW_EVERY)
        if (next_item := self._aligner.next_time()) is not None:
            times.append(next_item)
        return min(times, default=None)

    def _patience(self, place: tuple[int, str]) -> float:
        return LIVE_AFTER if any("\r" in part for part in self._partial[place]) else PROMPT_AFTER

    def _merge(self, now: float) -> None:
        while found := self._aligner.pop(now):
            self._show(*found)

    def _show(self, group: list[int], item: Item) -> None:
        entry = self._rich.get(item.key)
        if entry and all(self._shown_at[rank] < entry.position for rank in group):
            # The same figure, later: its label is rewritten, and it is not shown again.
            entry.ranks.update(group)
            if not self._redraw:
                self._out.append(self._label(entry, update=True))
        else:
            entry = _Entry(set(group), item, self._next_position())
            self._entries.append(entry)
            if isinstance(item.payload, Display):
                self._rich[item.key] = entry
            if not self._redraw:
                self._publish(entry)
        for rank in group:
            self._shown_at[rank] = entry.position

    def _next_position(self) -> int:
        self._position += 1
        return self._position

    def _publish(self, entry: _Entry) -> None:
        shown = entry.item.payload
        if isinstance(shown, Display):
            self._out += [self._label(entry), shown]
        else:
            label = f"[{format_ranks(entry.ranks)}]".ljust(self._width)
            self._out.append(Text(entry.item.key[0], f"{label} {shown}\n"))

    def _label(self, entry: _Entry, update: bool = False) -> Display:
        text = {"text/plain": f"[{format_ranks(entry.ranks)}]"}
        return Display(text, {}, f"{self._cell}-label-{entry.position}", update)

    # -- unfinished lines -------------------------------------------------------------------

    def _show_unfinished(self, now: float) -> None:
        for place, since in self._partial_since.items():
            rank = place[0]
            block = self._live.get(place)
            if block is None:
                if self._aligner.waiting(rank) or now - since < self._patience(place):
                    continue
                block = self._live[place] = self._block_for(rank)
            row = overwrite("".join(self._partial[place]))
            self._partial[place] = [row]
            if block.rows.get(rank) != row:
                self._set_row(block, rank, row)

    def _block_for(self, rank: int) -> _Block:
        """Return a block that this rank may join without its output changing order."""
        block = self._open_block
        if block is None or rank in block.rows or self._shown_at[rank] > block.position:
            block = self._open_block = _Block(self._next_position())
            self._entries.append(block)
        self._shown_at[rank] = block.position
        return block

    def _set_row(self, block: _Block, rank: int, row: str) -> None:
        block.rows[rank] = row
        if block not in self._undrawn:
            self._undrawn.append(block)

    def _draw_blocks(self, now: float, last: bool) -> None:
        waiting, self._undrawn = self._undrawn, []
        for block in waiting:
            if last or now - block.drawn >= REDRAW_EVERY:
                self._draw(block, now)
            else:
                self._undrawn.append(block)

    def _draw(self, block: _Block, now: float) -> None:
        rows: dict[str, list[int]] = {}
        for rank, row in sorted(block.rows.items()):
            rows.setdefault(row, []).append(rank)
        text = "\n".join(
            f"[{format_ranks(ranks)}]".ljust(self._width) + " " + row for row, ranks in rows.items()
        )
        name = f"{self._cell}-block-{block.position}"
        self._out.append(Display({"text/plain": text}, {}, name, update=block.drawn >= 0))
        block.drawn = now

    def _draw_again(self, now: float) -> None:
        self._out = [Clear()]
        self._undrawn.clear()
        for entry in self._entries:
            if isinstance(entry, _Block):
                entry.drawn = -1.0
                self._draw(entry, now)
            else:
                self._publish(entry)
        self._redraw, self._last_redraw = False, now


def _display_id(content: dict[str, Any]) -> str | None:
    display_id: str | None = content.get("transient", {}).get("display_id")
    return display_id
