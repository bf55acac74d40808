"""The cells that ran on ranks, as far as the states of the pools were followed."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from ..common.protocol.records import PoolRecord, RankRecord
from .manager import PoolManager
from .pool import Pool

KEEP = 3600.0
"""Seconds for which it is known what a rank did: the longest range of the panel's timeline."""
MOST = 4000
"""No more stretches are kept of a pool, however quick the cells and however many the ranks."""


@dataclass
class Stretch:
    """A time in which a rank was busy with one cell."""

    pool: PoolRecord
    rank: int
    gpu: str | None
    """The UUID."""
    cell: int | None
    """The notebook's number of the cell, `None` if that has none."""
    cell_id: str | None
    """The notebook's id of the cell, `None` if the front end gave none."""
    start: float
    end: float | None = None
    """`None` while it lasts."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the REST API shows it, below its pool."""
        names = ("rank", "gpu", "cell", "cell_id", "start", "end")
        return {name: getattr(self, name) for name in names}


class CellHistory:
    """The last hour of all pools, those that have ended since included.

    Parameters
    ----------
    manager : PoolManager
        Whose pools are followed, from now on.
    """

    def __init__(self, manager: PoolManager) -> None:
        self._running: dict[tuple[str, int], Stretch] = {}
        self._over: dict[str, deque[Stretch]] = {}
        """By pool, each by their end."""
        manager.listen(self._on_change, self._on_removal)

    def to_json(self) -> dict[str, Any]:
        """Return the body of ``GET /cells``: of each pool its stretches, by their start."""
        self._forget()
        over = (one for stretches in self._over.values() for one in stretches)
        known = sorted((*over, *self._running.values()), key=lambda one: one.start)
        pools: dict[str, dict[str, Any]] = {}
        for stretch in known:
            pool = stretch.pool
            shown = pools.setdefault(pool.id, {"id": pool.id, "stretches": []})
            shown |= {"kernel_id": pool.kernel_id, "name": pool.name}  # as they are now
            shown["stretches"].append(stretch.to_json())
        return {"pools": list(pools.values())}

    def _on_change(self, pool: Pool) -> None:
        for rank in pool.record.ranks:
            known = self._running.get((pool.record.id, rank.rank))
            if (rank.state == "busy") != bool(known) or (known and known.start != rank.since):
                self._turn(pool.record, rank)

    def _turn(self, pool: PoolRecord, rank: RankRecord) -> None:
        self._close(pool.id, rank.rank, rank.since)
        if rank.state == "busy":
            gpu = rank.gpu.uuid if rank.gpu else None
            stretch = Stretch(pool, rank.rank, gpu, rank.cell, rank.cell_id, rank.since)
            self._running[pool.id, rank.rank] = stretch

    def _on_removal(self, pool_id: str) -> None:
        """Note that a pool is not followed any more; it may go on without us."""
        for pool, rank in list(self._running):
            if pool == pool_id:
                self._close(pool, rank, time.time())

    def _close(self, pool_id: str, rank: int, end: float) -> None:
        if stretch := self._running.pop((pool_id, rank), None):
            stretch.end = max(stretch.start, end)
            self._over.setdefault(pool_id, deque(maxlen=MOST)).append(stretch)
            self._forget()

    def _forget(self) -> None:
        oldest = time.time() - KEEP
        for pool, stretches in list(self._over.items()):
            while stretches and (stretches[0].end or 0.0) < oldest:
                stretches.popleft()
            if not stretches:
                del self._over[pool]
