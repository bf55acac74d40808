"""What is remembered of cells."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.attachment import Owner
from jupyter_dist_server.common.protocol.records import GpuReference, PoolRecord, RankRecord
from jupyter_dist_server.pools import cell_history
from jupyter_dist_server.pools.cell_history import CellHistory
from jupyter_dist_server.pools.manager import PoolManager
from jupyter_dist_server.pools.pool import Pool

NOW = time.time()


class Followed:
    """A pool of two ranks that a manager follows; its ranks do as they are told."""

    def __init__(self) -> None:
        gpu = GpuReference(3, "3", "GPU-3", "T")
        record = PoolRecord("p-1", "k-1", "a.ipynb", 2, "gloo", "cycle", "fork", "", "")
        record.ranks = [
            RankRecord(rank, rank, "cuda:0", gpu if rank else None, state="idle", since=NOW - 9000)
            for rank in (0, 1)
        ]
        manager = PoolManager()
        self.pool = Pool(record, manager._on_change, Owner())
        manager.pools["p-1"] = self.pool
        self.manager = manager
        self.history = CellHistory(manager)

    def turn(self, rank: int, state: str, cell: int | None, since: float) -> None:
        """Have a rank begin or end a cell."""
        assert self.pool.record.ranks[rank].turn(state, cell, f"id-{cell}", since)
        self.pool.change()

    def shown(self) -> list[tuple[Any, ...]]:
        """Return rank, cell, start and end of all that is known."""
        names = ("rank", "cell", "start", "end")
        pools = self.history.to_json()["pools"]
        return [tuple(one[name] for name in names) for pool in pools for one in pool["stretches"]]


def test_each_rank_has_a_stretch_for_each_cell() -> None:
    one = Followed()
    one.turn(0, "busy", 6, NOW - 20)
    one.turn(1, "busy", 6, NOW - 19)
    one.turn(0, "idle", 6, NOW - 18)
    # Nobody has seen it idle between two cells.
    one.turn(1, "busy", 7, NOW - 10)
    assert one.shown() == [
        (0, 6, NOW - 20, NOW - 18),
        (1, 6, NOW - 19, NOW - 10),
        (1, 7, NOW - 10, None),
    ]
    one.pool.change(kernel_id="k-2")
    (pool,) = one.history.to_json()["pools"]
    assert (pool["id"], pool["kernel_id"], pool["name"]) == ("p-1", "k-2", "a.ipynb")
    assert [stretch["gpu"] for stretch in pool["stretches"]] == [None, "GPU-3", "GPU-3"]
    assert [stretch["cell_id"] for stretch in pool["stretches"]] == ["id-6", "id-6", "id-7"]


def test_a_cell_ends_with_its_rank() -> None:
    one = Followed()
    one.turn(0, "busy", 6, NOW - 20)
    dead = one.pool.record.ranks[0]
    dead.state, dead.since = "dead", NOW - 15
    one.pool.change()
    assert one.shown() == [(0, 6, NOW - 20, NOW - 15)]


async def test_a_cell_of_a_pool_that_is_let_go_has_an_end() -> None:
    one = Followed()
    one.turn(0, "busy", 6, NOW - 20)
    await one.manager.release("p-1")
    ((*_, end),) = one.shown()
    assert end == pytest.approx(time.time(), abs=10)


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    one, now = Followed(), time.time()
    one.turn(0, "busy", 5, now - 8000)
    one.turn(0, "idle", 5, now - 3700)
    one.turn(0, "busy", 6, now - 3650)
    one.turn(0, "idle", 6, now - 3500)
    one.turn(1, "busy", 4, now - 8000)
    assert one.shown() == [(1, 4, now - 8000, None), (0, 6, now - 3650, now - 3500)]


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_history, "MOST", 3)
    one = Followed()
    for cell in range(10):
        one.turn(0, "busy", cell, NOW - 100 + cell)
    assert [cell for _, cell, *_ in one.shown()] == [6, 7, 8, 9]
