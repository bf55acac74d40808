"""Which cells of this notebook ran on its pool's ranks, for ``%dist_export``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ...common.protocol.jupyter_messages import Content
from ...common.protocol.pool_record import PoolRecord

MOST_CELLS = 1000


@dataclass(eq=False)
class RanCell:
    """A cell, and how it went."""

    code: str
    """Empty for what is not a cell; `why` says what it was."""
    ranks: list[int]
    number: int | None = None
    """The notebook's."""
    has_value: bool = False
    """Whether it showed its last expression."""
    why: str = ""
    """Why it cannot be run again."""

    def note_output(self, rank: int, kind: str, content: Content) -> None:
        """Note one output of a rank."""
        self.has_value |= kind == "execute_result"


class RanCells:
    """The cells that ran on one pool, in order."""

    def __init__(self) -> None:
        self.pool: PoolRecord | None = None
        self.dropped = 0
        """How many cells were forgotten."""
        self._cells: deque[RanCell] = deque(maxlen=MOST_CELLS)

    def __iter__(self) -> Iterator[RanCell]:
        return iter(self._cells)

    @property
    def last(self) -> RanCell | None:
        """The newest cell."""
        return self._cells[-1] if self._cells else None

    def add(self, pool: PoolRecord, cell: RanCell) -> RanCell:
        """Add a cell that begins to run; those of another pool are forgotten."""
        if self.pool is not None and self.pool.id != pool.id:
            self.clear()
        elif self.pool is not None and self.pool.generation != pool.generation:
            self._append(RanCell("", [], why="Ranks were replaced here and lost their variables."))
        self.pool = pool
        self._append(cell)
        return cell

    def note(self, pool: PoolRecord, text: str) -> None:
        """Add something that cannot be put in a script."""
        self.add(pool, RanCell("", [], why=text))

    def remove(self, cell: RanCell) -> None:
        """Forget a cell that did not run."""
        self._cells.remove(cell)

    def clear(self) -> None:
        """Forget everything."""
        self.pool, self.dropped = None, 0
        self._cells.clear()

    def _append(self, cell: RanCell) -> None:
        self.dropped += len(self._cells) == MOST_CELLS
        self._cells.append(cell)
