"""The cells that ran on ranks while their pools were followed."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ...common.protocol.pool_record import PoolRecord, RankRecord
from ...common.protocol.ranks.profile_messages import Lanes, RankLanes
from ..pool import Pool
from ..pool_manager import PoolManager

KEEP = 3600.0
"""Seconds for which it is known what a rank did: the longest range of the panel's timeline."""
MOST_PROFILED = 20
"""Cells for which it is kept what their ranks did when."""
MOST = 20_000
"""At most this many stretches are kept, for quick cells on many ranks."""


@dataclass(slots=True)
class Stretch:
    """A time in which a rank was busy with a cell."""

    rank: int
    gpu: str | None
    """The UUID."""
    start: float
    end: float | None = None
    """`None` while it lasts."""
    lanes: Lanes | None = None
    """What the rank did when, if that was profiled."""

    def overlaps(self, told: RankLanes | None) -> bool:
        """Tell whether the rank was profiled in this time."""
        end = math.inf if self.end is None else self.end
        return told is not None and self.start <= told.end and told.start <= end


class CellRun(msgspec.Struct, kw_only=True):
    """One execution of a cell, as the REST API and the stream show it."""

    id: str
    """Of its request."""
    pool: str
    kernel_id: str | None
    name: str
    """Of the notebook."""
    cell: int | None
    """The notebook's number of the cell, `None` if it has none."""
    cell_id: str | None
    """The notebook's ID of the cell, `None` if the front end sent none."""
    stretches: list[Stretch] = []

    @property
    def end(self) -> float | None:
        """When the last rank was done, `None` while one is busy."""
        ends = [stretch.end for stretch in self.stretches if stretch.end is not None]
        return max(ends) if len(ends) == len(self.stretches) else None


class CellHistory:
    """The last hour of all pools, ended ones included; `version` grows with each change."""

    def __init__(self, manager: PoolManager) -> None:
        self.version = 0
        self._cells: dict[tuple[str, str], tuple[int, CellRun]] = {}
        """By pool and request, with the version of their last changes, in this order."""
        self._running: dict[tuple[str, int], tuple[CellRun, Stretch]] = {}
        self._notebooks: dict[str, tuple[str | None, str]] = {}
        """By pool: the kernel and the path."""
        self._count = 0
        self._profiled: deque[CellRun] = deque(maxlen=MOST_PROFILED)
        manager.listen(self._on_change, self._on_removal)

    def since(self, version: int = 0) -> list[CellRun]:
        """Return the cells that have changed since a version, by their start."""
        self._forget()
        news = []
        for changed, cell in reversed(self._cells.values()):
            if changed <= version:
                break
            news.append(cell)
        return sorted(news, key=lambda cell: cell.stretches[0].start)

    def note_lanes(self, pool_id: str, told: Iterable[RankLanes]) -> None:
        """Note what ranks of a pool did when in a cell; an unknown cell is ignored."""
        begun = {one.rank: one for one in told}
        for cell in reversed(self._cells_of(pool_id)):
            theirs = [s for s in cell.stretches if s.overlaps(begun.get(s.rank))]
            for stretch in theirs:
                if one := begun.pop(stretch.rank, None):
                    stretch.lanes = one.lanes
            if theirs:
                self._keep_lanes(cell)

    def _cells_of(self, pool_id: str) -> list[CellRun]:
        return [cell for _, cell in self._cells.values() if cell.pool == pool_id]

    def _keep_lanes(self, cell: CellRun) -> None:
        if all(cell is not one for one in self._profiled):
            if len(self._profiled) == MOST_PROFILED:
                for stretch in self._profiled[0].stretches:
                    stretch.lanes = None
            self._profiled.append(cell)
        self._touch(cell)

    def _on_change(self, pool: Pool) -> None:
        record = pool.record
        for rank in record.ranks:
            _, stretch = self._running.get((record.id, rank.rank), (None, None))
            if (rank.state == "busy") != bool(stretch) or (stretch and stretch.start != rank.since):
                self._note_activity(record, rank)
        notebook = record.kernel_id, record.name
        if self._notebooks.setdefault(record.id, notebook) != notebook:
            self._notebooks[record.id] = notebook
            for cell in self._cells_of(record.id):
                cell.kernel_id, cell.name = notebook
                self._touch(cell)

    def _note_activity(self, pool: PoolRecord, rank: RankRecord) -> None:
        self._close(pool.id, rank.rank, rank.since)
        if rank.state == "busy":
            stretch = Stretch(rank.rank, rank.gpu.uuid if rank.gpu else None, rank.since)
            request = rank.msg_id or ""
            _, cell = self._cells.get((pool.id, request), (0, None))
            cell = cell or CellRun(
                id=request,
                pool=pool.id,
                kernel_id=pool.kernel_id,
                name=pool.name,
                cell=rank.cell,
                cell_id=rank.cell_id,
            )
            cell.stretches.append(stretch)
            self._running[pool.id, rank.rank] = cell, stretch
            self._count += 1
            self._touch(cell)

    def _on_removal(self, pool_id: str) -> None:
        """Note that a pool is not followed any more; it may continue without us."""
        self._notebooks.pop(pool_id, None)
        for pool, rank in list(self._running):
            if pool == pool_id:
                self._close(pool, rank, time.time())

    def _close(self, pool_id: str, rank: int, end: float) -> None:
        if running := self._running.pop((pool_id, rank), None):
            cell, stretch = running
            stretch.end = max(stretch.start, end)
            self._touch(cell)

    def _touch(self, cell: CellRun) -> None:
        self.version += 1
        self._cells.pop((cell.pool, cell.id), None)
        self._cells[cell.pool, cell.id] = self.version, cell
        self._forget()

    def _forget(self) -> None:
        """Forget cells that ended too long ago, and the first ones if there are too many."""
        oldest = time.time() - KEEP
        forgotten = []
        for key, (_, cell) in self._cells.items():
            if (end := cell.end) is None:
                continue
            if end >= oldest and self._count <= MOST:
                break
            self._count -= len(cell.stretches)
            forgotten.append(key)
        for key in forgotten:
            del self._cells[key]
