"""What is stopped (SIGSTOP) is handled as what is dead: within a limit, and without harm later."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.pools.records import PoolState

from ..driver import environment, tagged
from .test_warm import agent_of, start, until, warm_manager, zygotes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="zygotes are Linux's")


def test_a_stopped_zygote_delays_a_start_by_seconds_and_no_stop(tmp_path: Path) -> None:
    env = environment(tmp_path)

    async def check() -> None:
        async with warm_manager() as manager:
            first = await start(manager, env, tmp_path)
            await until(lambda: zygotes(env))
            of_zygote = await start(manager, env, tmp_path)
            (zygote,) = zygotes(env)
            assert agent_of(of_zygote).parent() == zygote
            zygote.suspend()
            await asyncio.wait_for(of_zygote.stop(), 15)
            assert of_zygote.record.state is PoolState.COMPLETED
            await until(lambda: zygote not in zygotes(env))  # it has not told how its agent ended
            fresh = await start(manager, env, tmp_path)
            await until(lambda: zygotes(env))
            (zygote,) = zygotes(env)
            zygote.suspend()
            another = await start(manager, env, tmp_path)
            assert agent_of(another).parent() == psutil.Process()
            await until(
                lambda: zygote not in zygotes(env)
            )  # going on, it would fork a second agent
            for pool in (first, fresh):
                assert pool.record.state is PoolState.RUNNING
            await until(lambda: zygotes(env))
            (zygote,) = zygotes(env)
            zygote.suspend()
        await until(lambda: not tagged(env))

    asyncio.run(check())


def test_a_fork_that_is_cancelled_leaves_nothing_behind(tmp_path: Path) -> None:
    env = environment(tmp_path)

    async def check() -> None:
        async with warm_manager() as manager:
            first = await start(manager, env, tmp_path)
            await until(lambda: zygotes(env))
            (zygote,) = zygotes(env)
            zygote.suspend()
            known = next(iter(manager.zygotes._known.values()))
            forking = asyncio.create_task(known.fork(Path(first.record.folder), []))
            await asyncio.sleep(0)
            forking.cancel()
            await asyncio.gather(forking, return_exceptions=True)
            zygote.send_signal(signal.SIGCONT)
            assert not known._asked
            third = await start(manager, env, tmp_path)
            assert agent_of(third).parent() == zygote
        await until(lambda: not tagged(env))

    asyncio.run(check())
