"""One mistake, odd record or dead rank is the fault of one, and costs nobody else anything."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import tempfile
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.client.agent_link import look_at_agent
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.protocol.agents.agent_messages import Snapshot
from jupyter_dist_server.common.protocol.agents.attachment import SERVER, Owner
from jupyter_dist_server.common.protocol.pool_file import CONFIG
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.pools.discovery import find_pools, pools_of_other_versions, sweep
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_agent import PoolAgent
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.pools.reports.rank_usage import RankUsage

from ..pool_driver import WarmManager, client_of, follow, request, running
from ..waiting import PATIENCE


async def test_a_guest_who_leaves_during_a_restart_does_not_end_the_pool(tmp_path: Path) -> None:
    guests = PoolManager()
    async with running(request(tmp_path, timeout=PATIENCE)) as pool:
        (found,) = await asyncio.to_thread(lambda: list(find_pools()))
        guest = guests.adopt(found)
        await follow(guest)
        guest.commands._timeout = 5
        psutil.Process(pool.record.ranks[1].pid).suspend()  # so that it is not ready in time
        await pool.commands.restart([1])
        while guest.record.state is not PoolState.CONFIGURING:
            await asyncio.wait_for(guest.changed_since(guest.record.version, 60), PATIENCE)
        await guests.release(guest.record.id)
        assert not guest._tasks._tasks
        await follow(pool)
        await asyncio.sleep(5.5)  # longer than the guest would have waited
        assert pool.record.state is PoolState.RUNNING


async def test_a_dead_rank_delays_no_restart_of_another(tmp_path: Path) -> None:
    manager = WarmManager(watch=True)
    pool = await manager.create(request(tmp_path, num_ranks=3, timeout=4 * PATIENCE))
    try:
        await follow(pool)
        os.kill(pool.record.ranks[2].pid or 0, signal.SIGKILL)
        while pool.record.ranks[2].state != "dead":
            await asyncio.wait_for(pool.changed_since(pool.record.version, 60), PATIENCE)
        activity = pool._activity
        assert activity
        watcher = activity._watcher
        await pool.commands.restart([1])
        await follow(pool)
        assert activity._watcher is not watcher and activity._watcher
        assert set(activity._living()) == {0, 1}  # who are waited for
        limits = [task for task in pool._tasks._tasks if "_limit_restart" in repr(task)]
        await asyncio.wait_for(asyncio.gather(*limits), PATIENCE)
    finally:
        await manager.stop_all()


async def test_a_pool_may_end_before_its_cells_are_stopped(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool:
        await pool.stop()
        await pool.commands._stop_cells()


async def test_no_ranks_is_no_error(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        assert await client.execute("1", [], lambda *_: None) == {}


async def test_a_start_that_fails_early_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    manager = WarmManager()
    for _ in range(2):  # the second time, the kernel must not have "a pool already"
        with pytest.raises(FileNotFoundError):
            await manager.create(request(tmp_path, kernel_id="k1", cwd=None))


@pytest.fixture
def late_owner(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot | None]:
    """Keep the owner of an agent from it for a second; return what others have seen before."""
    seen: list[Snapshot | None] = []

    async def connect_late(agent: PoolAgent, owner: Owner) -> None:
        folder = Path(agent._record.folder)
        seen.append(await asyncio.to_thread(look_at_agent, folder, PATIENCE))
        await asyncio.sleep(1)
        await connect(agent, owner)

    connect = PoolAgent.connect
    monkeypatch.setattr(PoolAgent, "connect", connect_late)
    return seen


async def test_a_start_that_fails_before_its_owner_has_connected_is_explained(
    tmp_path: Path, late_owner: list[Snapshot | None]
) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('no', name='torch')")
    pool = await WarmManager().create(request(tmp_path, env={"PYTHONPATH": str(tmp_path)}))
    await follow(pool)
    assert [said and said.failure is not None for said in late_owner] == [True]
    assert pool.record.reason and pool.record.reason.code == "torch_missing", pool.record.reason


@pytest.mark.usefixtures("late_owner")
async def test_a_limit_that_is_over_before_the_owner_has_connected_is_explained(
    tmp_path: Path,
) -> None:
    pool = await WarmManager().create(request(tmp_path, time_limit=0.1))
    await follow(pool)
    assert pool.record.reason and pool.record.reason.code == "time_limit", pool.record.reason


async def test_listeners_and_odd_messages_end_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    manager = WarmManager()
    told: list[Pool] = []

    def fail(pool: Pool) -> None:
        raise RuntimeError("a listener's mistake")

    manager.listen(fail, lambda _: None)
    manager.listen(told.append, lambda _: None)
    pool = await manager.create(request(tmp_path))
    try:
        await follow(pool)
        assert told and pool.record.state is PoolState.RUNNING
        async with client_of(pool) as client:
            reader = asyncio.StreamReader()
            reader.feed_data(b'not JSON\n{"says": "log", "lines": 1}\n{"says": "pong"}\n')
            reader.feed_eof()
            heard = client.link._heard
            await client.link._read(reader)
            assert heard.is_set()
    finally:
        await manager.stop_all()
    assert "a listener's mistake" in caplog.text
    assert "b'not JSON" in caplog.text


async def test_a_pool_of_another_version_is_left_alone_and_hides_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owner = WarmManager(owner=Owner(SERVER, 60.0))
    pools = [await owner.create(request(tmp_path)) for _ in range(2)]
    for pool in pools:
        await follow(pool)
    odd = Path(pools[0].record.folder, CONFIG)
    config = json.loads(odd.read_text())
    config["version"] += 1
    odd.write_text(json.dumps(config))
    await owner.release(pools[1].record.id)
    successor = PoolManager(owner=Owner(SERVER, 60.0))
    try:
        adopted = {pool.record.id for pool in await successor.adopt_unserved()}
        assert adopted == {pools[1].record.id}
        assert pools_of_other_versions() == [odd.parent]
        assert f"{odd.parent} is left alone: it was started by a newer version" in caplog.text
        sweep()
        assert odd.exists() and pools[0].record.state is PoolState.RUNNING
    finally:
        for pool in successor.live():
            await follow(pool)
        await successor.stop_all()
        await owner.stop_all()


def test_a_folder_of_anything_is_skipped() -> None:
    for name, text in (("a", "[]"), ("b", '{"host": 1, "boot": 2}'), ("c", "{"), ("d", "null")):
        folder = Path(tempfile.gettempdir(), f"jdist-odd-{name}")
        folder.mkdir()
        (folder / CONFIG).write_text(text)
    try:
        assert list(find_pools()) == []
    finally:
        for folder in Path(tempfile.gettempdir()).glob("jdist-odd-*"):
            shutil.rmtree(folder)


async def test_one_look_that_fails_is_not_the_last(tmp_path: Path) -> None:
    manager = WarmManager()
    usage = RankUsage(manager, interval=0.05)
    looked = asyncio.Event()
    fail = True

    def listener() -> None:
        nonlocal fail
        if fail:
            fail = False
            raise RuntimeError("a listener's mistake")
        looked.set()

    pool = await manager.create(request(tmp_path))
    await follow(pool)
    usage.listen(listener)
    release = usage.want()
    try:
        await asyncio.wait_for(looked.wait(), PATIENCE)
    finally:
        release()
        await usage.close()
        await manager.stop_all()


async def test_an_error_after_the_start_is_not_called_a_failed_start(tmp_path: Path) -> None:
    pool = await WarmManager().create(request(tmp_path))
    await follow(pool)
    pool.agent.process, agent = None, pool.agent.process  # nothing else makes it fail now
    pool._link.closed.set()
    await asyncio.wait_for(pool.ended.wait(), PATIENCE)
    assert pool.record.reason
    assert pool.record.reason.code == "pool_failed"
    assert "unexpected error" in pool.record.reason.message
    assert agent
    await agent.wait(PATIENCE)


async def test_a_pool_survives_a_lost_connection(tmp_path: Path) -> None:
    manager = WarmManager(owner=Owner(SERVER, 60.0))
    pool = await manager.create(request(tmp_path))
    try:
        await follow(pool)
        lost = pool._link
        assert lost._writer
        lost._writer.transport.abort()
        while pool._link is lost:
            await asyncio.wait_for(pool.changed_since(pool.record.version, 60), PATIENCE)
        assert await pool._link.answers()
        assert pool.record.state is PoolState.RUNNING
        client = PoolClient(Path(pool.record.folder))
        await client.connect()
        await client.close()
    finally:
        await manager.stop_all()


async def test_an_agent_that_dies_in_a_restart_is_not_called_silent(tmp_path: Path) -> None:
    pool = await WarmManager().create(request(tmp_path))
    await follow(pool)
    agent = psutil.Process(pool.record.ranks[0].pid).parent()
    assert agent
    agent.suspend()
    restarting = asyncio.create_task(pool.commands.restart([1]))
    await asyncio.sleep(0)
    agent.kill()
    await asyncio.wait([restarting], timeout=PATIENCE)
    await asyncio.wait_for(pool.ended.wait(), PATIENCE)
    assert pool.record.reason and pool.record.reason.code == "agent_failed"
