"""What is stopped (SIGSTOP) is handled as what is dead: within a limit, and without harm later."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.placement.new_pool_record import new_record
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool_agent import PoolAgent
from jupyter_dist_server.pools.processes.agent_process import AgentProcess

from ..environment import environment, tagged
from ..pool_driver import agent_of, follow
from ..waiting import PATIENCE
from .warm import start, until, warm_manager, zygotes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="zygotes are Linux's")


async def test_a_stopped_zygote_delays_a_start_by_seconds_and_no_stop(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        first = await start(manager, env, tmp_path)
        await until(lambda: zygotes(env))
        of_zygote = await start(manager, env, tmp_path)
        (zygote,) = zygotes(env)
        assert agent_of(of_zygote).parent() == zygote
        zygote.suspend()
        await asyncio.wait_for(of_zygote.stop(), PATIENCE)
        assert of_zygote.record.state is PoolState.COMPLETED
        fresh = await start(manager, env, tmp_path)
        await until(lambda stopped=zygote: stopped not in zygotes(env))
        await until(lambda: zygotes(env))
        (zygote,) = zygotes(env)
        zygote.suspend()
        another = await start(manager, env, tmp_path)
        assert agent_of(another).parent() != zygote
        # Going on, it would fork a second agent.
        await until(lambda stopped=zygote: stopped not in zygotes(env))
        for pool in (first, fresh):
            assert pool.record.state is PoolState.RUNNING
        await until(lambda: zygotes(env))
        (zygote,) = zygotes(env)
        zygote.suspend()
    await until(lambda: not tagged(env))


async def test_a_fork_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        first = await start(manager, env, tmp_path)
        await until(lambda: zygotes(env))
        (zygote,) = zygotes(env)
        zygote.suspend()
        (known,) = manager.zygotes._zygotes.values()
        forking = asyncio.create_task(known.start_agent(Path(first.record.folder), []))
        await asyncio.sleep(0)
        forking.cancel()
        await asyncio.gather(forking, return_exceptions=True)
        zygote.send_signal(signal.SIGCONT)
        assert not known._asked
        third = await start(manager, env, tmp_path)
        assert agent_of(third).parent() == zygote
    await until(lambda: not tagged(env))


async def test_a_stopped_agent_is_told_and_killed_with_its_pool(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        stopped = await start(manager, env, tmp_path)
        restarted = await start(manager, env, tmp_path)
        well = await start(manager, env, tmp_path)
        client = PoolClient(Path(stopped.record.folder))
        await client.connect()
        begun = asyncio.Event()
        cell = client.execute("print(1)\ndist.barrier()", [0], lambda *_: begun.set())
        hanging = asyncio.create_task(cell)
        await begun.wait()
        agent = agent_of(stopped)  # later, its rank 0 may have been killed
        for process in (agent, agent_of(restarted)):
            process.suspend()
        pid = agent.pid
        restarting = asyncio.create_task(restarted.commands.restart([1]))
        while not stopped.record.notices:
            await asyncio.wait_for(stopped.changed_since(stopped.record.version, 60), PATIENCE)
        (notice,) = stopped.record.notices
        assert f"The pool's agent (pid {pid}) does not respond" in notice
        with pytest.raises(DistError) as refused:
            await stopped.commands.kill([0])
        assert refused.value.code == "agent_silent"
        with pytest.raises(DistError) as refused:
            await restarting
        assert refused.value.code == "agent_silent"
        assert restarted.record.state is PoolState.RUNNING
        await stopped.commands.interrupt()  # which needs no agent, as the rank answers
        assert (await asyncio.wait_for(hanging, PATIENCE))[0].status == "error"
        await client.close()
        agent.resume()
        while stopped.record.notices:
            await asyncio.wait_for(stopped.changed_since(stopped.record.version, 60), PATIENCE)
        assert stopped.record.state is PoolState.RUNNING
        agent.suspend()
        await asyncio.wait_for(stopped.stop(), PATIENCE)
        assert stopped.record.state is PoolState.COMPLETED
        agent_of(restarted).resume()
        await restarted.commands.restart([1])  # the first one was not only late
        assert restarted.record.generation == 1
        await follow(restarted)
        assert restarted.record.state is PoolState.RUNNING
        assert well.record.state is PoolState.RUNNING
        asked = PoolRequest(num_ranks=2, base_env=env, cwd=str(tmp_path), timeout=10)
        late = await manager.create(asked)
        while not late.agent.pid:
            await asyncio.sleep(0)
        psutil.Process(late.agent.pid).suspend()
        await asyncio.wait_for(late.ended.wait(), PATIENCE)
        reason = late.record.reason
        assert reason and reason.code == "start_timeout"
        assert f"its agent (pid {late.agent.pid}) was stopped" in reason.message
    await until(lambda: not tagged(env))


async def test_stopped_ranks_are_replaced_and_stopped(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        for victims in ([1], [0, 1]):
            pool = await start(manager, env, tmp_path)
            for rank in victims:
                psutil.Process(pool.record.ranks[rank].pid).suspend()
            await pool.commands.restart(victims)
            while pool.record.state is not PoolState.RUNNING:
                assert not pool.record.state.ended, pool.record.reason
                await asyncio.wait_for(pool.changed_since(pool.record.version, 60), PATIENCE)
            for rank in victims:
                psutil.Process(pool.record.ranks[rank].pid).suspend()
            await asyncio.wait_for(pool.stop(), PATIENCE)
            assert pool.record.state is PoolState.COMPLETED
    await until(lambda: not tagged(env))


async def test_an_agent_that_even_sigkill_does_not_end_is_left_within_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As one that hangs in a system call of a driver."""
    monkeypatch.setattr(patience, "factor", 0.01)
    monkeypatch.setattr(AgentProcess, "send_signal", lambda *_: None)
    folder = tmp_path / "pool"
    folder.mkdir()
    asked = PoolRequest(num_ranks=1, cwd=str(tmp_path))
    agent = PoolAgent(msgspec.structs.replace(new_record(asked), folder=str(folder)), print)
    with subprocess.Popen(["sleep", "1000"]) as process:
        agent.process = AgentProcess(ProcessRef.of(process.pid))
        try:
            await asyncio.wait_for(agent.leave_nothing(unexpected=False), PATIENCE)
            assert process.poll() is None
        finally:
            process.kill()
    assert "was killed, but has not ended" in caplog.text
    assert not folder.exists()
