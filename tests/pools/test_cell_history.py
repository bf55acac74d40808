"""What is remembered of cells."""

from __future__ import annotations

import time
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.agents.attachment import Owner
from jupyter_dist_server.common.protocol.pool_record import GpuReference, PoolRecord, RankRecord
from jupyter_dist_server.common.protocol.ranks.profile_messages import Lanes, LaneSeconds, RankLanes
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.pools.reports import cell_history
from jupyter_dist_server.pools.reports.cell_history import CellHistory

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

    def note(self, rank: int, state: str, cell: int | None, since: float) -> None:
        """Have a rank begin or end a cell."""
        note = self.pool.record.ranks[rank].note_activity
        assert note(state, cell, f"id-{cell}", f"request-{cell}", since)
        self.pool.change()

    def shown(self) -> list[tuple[Any, ...]]:
        """Return cell, rank, start and end of all that is known."""
        return [
            (cell.cell, one.rank, one.start, one.end)
            for cell in self.history.since()
            for one in cell.stretches
        ]


def test_ranks_that_run_one_request_are_one_cell() -> None:
    one = Followed()
    one.note(0, "busy", 6, NOW - 20)
    one.note(1, "busy", 6, NOW - 19)
    one.note(0, "idle", 6, NOW - 18)
    # Nobody has seen it idle between two cells.
    one.note(1, "busy", 7, NOW - 10)
    assert one.shown() == [
        (6, 0, NOW - 20, NOW - 18),
        (6, 1, NOW - 19, NOW - 10),
        (7, 1, NOW - 10, None),
    ]
    six, seven = one.history.since()
    assert (six.id, six.pool, six.cell_id) == ("request-6", "p-1", "id-6")
    assert [stretch.gpu for stretch in six.stretches] == [None, "GPU-3"]
    assert (six.kernel_id, seven.name) == ("k-1", "a.ipynb")


def test_whoever_has_seen_a_version_is_told_what_changed_since() -> None:
    one = Followed()
    one.note(0, "busy", 6, NOW - 20)
    one.note(0, "idle", 6, NOW - 18)
    one.note(0, "busy", 7, NOW - 10)
    seen = one.history.version
    assert one.history.since(seen) == []
    one.note(1, "busy", 7, NOW - 9)
    (news,) = one.history.since(seen)
    assert news.cell == 7 and len(news.stretches) == 2
    seen = one.history.version
    one.pool.change(kernel_id="k-2")
    assert [(news.cell, news.kernel_id) for news in one.history.since(seen)] == [
        (6, "k-2"),
        (7, "k-2"),
    ]


def test_a_cell_ends_with_its_rank() -> None:
    one = Followed()
    one.note(0, "busy", 6, NOW - 20)
    dead = one.pool.record.ranks[0]
    dead.state, dead.since = "dead", NOW - 15
    one.pool.change()
    assert one.shown() == [(6, 0, NOW - 20, NOW - 15)]


def test_lanes_are_kept_with_the_cell_that_was_profiled() -> None:
    one = Followed()
    seconds = LaneSeconds(compute=0.5, communication=0, waiting=0)
    lanes = Lanes(compute=[(NOW - 19, NOW - 18.5)], communication=[], waiting=[], seconds=seconds)
    one.note(0, "busy", 6, NOW - 20)
    one.note(1, "busy", 6, NOW - 20)
    one.note(0, "idle", 6, NOW - 18)
    one.note(0, "busy", 7, NOW - 10)
    seen = one.history.version
    told = [RankLanes(rank=rank, start=NOW - 19, end=NOW - 18.5, lanes=lanes) for rank in (0, 1, 5)]
    one.history.note_lanes("p-1", told)
    (six,) = one.history.since(seen)
    assert [stretch.lanes for stretch in six.stretches] == [lanes, lanes]
    assert all(s.lanes is None for cell in one.history.since()[1:] for s in cell.stretches)
    one.history.note_lanes("p-2", told)
    assert one.history.since(one.history.version) == []


def test_the_lanes_of_old_cells_are_forgotten() -> None:
    one = Followed()
    seconds = LaneSeconds(compute=0, communication=0, waiting=0)
    lanes = Lanes(compute=[], communication=[], waiting=[], seconds=seconds)
    for cell in range(cell_history.MOST_PROFILED + 1):
        begun = NOW - 1000 + cell * 10
        one.note(0, "busy", cell, begun)
        one.note(0, "idle", cell, begun + 5)
        told = RankLanes(rank=0, start=begun + 1, end=begun + 2, lanes=lanes)
        one.history.note_lanes("p-1", [told])
        one.history.note_lanes("p-1", [told])
    kept = [cell.stretches[0].lanes is not None for cell in one.history.since()]
    assert kept == [False] + [True] * cell_history.MOST_PROFILED


async def test_a_cell_of_a_pool_that_is_let_go_has_an_end() -> None:
    one = Followed()
    one.note(0, "busy", 6, NOW - 20)
    await one.manager.release("p-1")
    ((*_, end),) = one.shown()
    assert end == pytest.approx(time.time(), abs=10)


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    one, now = Followed(), time.time()
    one.note(0, "busy", 5, now - 8000)
    one.note(0, "idle", 5, now - 3700)
    one.note(0, "busy", 6, now - 3650)
    one.note(0, "idle", 6, now - 3500)
    one.note(1, "busy", 4, now - 8000)
    assert one.shown() == [(4, 1, now - 8000, None), (6, 0, now - 3650, now - 3500)]


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_history, "MOST", 3)
    one = Followed()
    for cell in range(10):
        one.note(0, "busy", cell, NOW - 100 + cell)
    assert [cell for cell, *_ in one.shown()] == [7, 8, 9]
