"""Pools that end by a limit: of their time, or of the time that they are idle."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.files.past_use import past_use
from jupyter_dist_server.common.policy import PATH
from jupyter_dist_server.common.protocol.agents.attachment import SERVER, Owner
from jupyter_dist_server.common.protocol.offers import InLine
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.jobs.leases.lease import holders
from jupyter_dist_server.jobs.schedule.board import posted
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools import idleness
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import FOUR, MACHINE, NAMES
from ..pool_driver import WarmManager, client_of, follow, request
from ..waiting import PATIENCE
from .warm import start_pool, until, warm_manager


async def ended(pool: Pool) -> str:
    """Wait for a pool's end; return the code of its reason."""
    while not pool.record.state.ended:
        await pool.changed_since(pool.record.version, 60)
    assert pool.record.state is PoolState.COMPLETED
    assert pool.record.reason
    return pool.record.reason.code


async def test_the_end_is_told_to_all_and_can_be_extended(gpus: State, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=4, time_limit=3600.0)
        first = holders(FOUR)[NAMES[0]].ends_by
        assert first == pytest.approx(pool.record.ends_by)
        assert first == pytest.approx(time.time() + 3600, abs=PATIENCE)
        await pool.commands.extend(600)
        assert pool.record.time_limit == 4200
        assert holders(FOUR)[NAMES[0]].ends_by == pytest.approx(first + 600, abs=1)

        second = await manager.create(PoolRequest(num_ranks=1, time_limit=60.0, wait=PATIENCE))
        while second.record.progress.phase != "waiting for GPUs":
            await second.changed_since(second.record.version, 60)
        (board,) = posted()
        assert [want.limit for want in board.wants] == [60.0]
        line = second.record.progress.line
        assert isinstance(line, InLine) and line.certain


async def test_a_pool_ends_at_its_time_limit(tmp_path: Path) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=1)
        assert pool.record.ends_by is None
        with pytest.raises(DistError, match="no time limit"):
            await pool.commands.extend(60)
        await pool.commands.extend(None)
        short = await manager.create(
            PoolRequest(num_ranks=1, cwd=str(tmp_path), time_limit=0.5, timeout=PATIENCE)
        )
        while not short.record.state.ended:
            await short.changed_since(short.record.version, 60)
        assert short.record.reason and short.record.reason.code == "time_limit"
        assert pool.record.state is PoolState.RUNNING


async def test_an_idle_pool_ends_but_not_while_its_gpus_do_something(
    gpus: State, tmp_path: Path
) -> None:
    gpus.write(**MACHINE, utilization=40)
    async with warm_manager() as manager:
        busy = await start_pool(manager, tmp_path, num_ranks=1, idle_limit=1.0)
        gone = await start_pool(manager, tmp_path, num_ranks=1, idle_limit=0.5)
        assert busy.record.state is PoolState.RUNNING
        gpus.update(utilization=0)
        assert await ended(gone) == "idle_limit"
        assert await ended(busy) == "idle_limit"
        assert "0:01" in (busy.record.reason.message if busy.record.reason else "")


async def test_the_policy_says_which_load_is_none_and_what_a_pool_had_is_noted(
    gpus: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.toml").write_text("idle_load = 50\n")
    monkeypatch.setenv(PATH, str(tmp_path / "policy.toml"))
    gpus.write(**MACHINE, utilization=40)
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, idle_limit=1.0)
        assert await ended(pool) == "idle_limit"
        assert pool.record.ended and pool.record.started
        lasted = pool.record.ended - pool.record.started
    (past,) = past_use().values()
    (day,) = past.days if past else ()
    assert day.used >= 2 * lasted and 0 < day.idle < day.used and day.failed == 0


async def test_a_load_that_begins_later_begins_the_idle_time_again(
    gpus: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idleness, "_AFTER", 0.3)
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=1, idle_limit=3600.0)
        await until(lambda: pool.record.idle_since)
        gpus.update(utilization=40)
        await until(lambda: pool.record.idle_since is None)


async def test_a_gpu_whose_load_cannot_be_read_is_not_taken_for_idle(
    gpus: State, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gpus.write(**MACHINE, utilization="!unknown")
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=1, idle_limit=0.5)
        await until(lambda: caplog.text.count("The utilization of GPU-fake-0 cannot") >= 2)
        assert pool.record.state is PoolState.RUNNING
        gpus.update(utilization="!unsupported")  # as of MIG instances: only cells count
        assert await ended(pool) == "idle_limit"


async def test_a_reading_of_nvml_that_fails_is_not_the_last(
    gpus: State,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=1, idle_limit=3.0)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "executable", str(tmp_path / "none"))  # what reads NVML is Python
            await until(lambda: "cannot be started: No such file" in caplog.text)
        assert pool.record.state is PoolState.RUNNING
        assert await asyncio.wait_for(ended(pool), PATIENCE) == "idle_limit"


async def test_a_server_that_adopts_pools_does_not_take_them_for_idle_since_their_start(
    tmp_path: Path,
) -> None:
    limit, go = 10.0, tmp_path / "go"
    code = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    first = WarmManager(watch=True, owner=Owner(SERVER, PATIENCE))
    second = PoolManager(watch=True, owner=Owner(SERVER, PATIENCE))
    wanted = request(tmp_path, num_ranks=1, idle_limit=limit)
    try:
        busy = await first.create(wanted)
        await follow(busy)
        async with client_of(busy) as client:
            cell = asyncio.create_task(client.execute(code, [0], lambda *_: None))
            while busy.record.ranks[0].state != "busy":
                await busy.changed_since(busy.record.version, PATIENCE)
            idle = await first.create(wanted)
            await follow(idle)
            idle_since = idle.record.ranks[0].since
            for pool in busy, idle:
                await first.release(pool.record.id)
            while time.time() < idle_since + limit:
                await asyncio.sleep(0.1)

            begun = time.time()
            await second.adopt_unserved()
            idle, busy = (second.get(pool.record.id) for pool in (idle, busy))
            assert await ended(idle) == "idle_limit"
            assert idle.record.ended and idle.record.ended >= begun + limit
            assert busy.record.state is PoolState.RUNNING
            go.touch()
            replies = await asyncio.wait_for(cell, PATIENCE)
            assert replies[0].status == "ok", busy.record.reason
    finally:
        await second.stop_all()
        await first.stop_all()
