"""The zygote that makes a second pool start at once, and when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE
from jupyter_dist_server.common.processes import ProcessRef
from jupyter_dist_server.common.protocol.records import PoolState
from jupyter_dist_server.pools.zygotes import Zygote

from ..driver import Notebook, environment, plain_notebook, tagged, wait_for
from ..pool_driver import agent_of
from .warm import start, until, warm_manager, zygotes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")


async def test_a_second_pool_comes_from_the_zygote(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        first = await start(manager, env, tmp_path)
        await first.stop()
        await until(lambda: zygotes(env))
        second = await start(manager, env | {"JPY_SESSION_NAME": "two.ipynb"}, tmp_path)
        (zygote,) = zygotes(env)
        assert agent_of(second).parent() == zygote
        assert os.listdir(f"/proc/{zygote.pid}/task") == [str(zygote.pid)]
        assert zygote.memory_full_info().uss < 0.5 * zygote.memory_info().rss
        held = [process_file.path for process_file in zygote.open_files()]
        assert not [name for name in held if second.record.folder in name]
    await until(lambda: not tagged(env))


async def test_pools_that_run_together_share_a_zygote_and_end_alone(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        await start(manager, env, tmp_path)
        one = await start(manager, env, tmp_path)
        two = await start(manager, env, tmp_path)
        assert agent_of(one).parent() == agent_of(two).parent() == zygotes(env)[0]
        agent_of(one).kill()
        await one.ended.wait()
        assert one.record.reason
        assert "The pool's agent was killed by signal 9" in one.record.reason.message
        assert two.record.state is PoolState.RUNNING


async def test_other_variables_need_a_process_of_their_own(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        await start(manager, env, tmp_path)
        other = await start(manager, env, tmp_path, env={"FRUIT": "apple"})
        assert agent_of(other).parent() not in zygotes(env)
        third = await start(manager, env, tmp_path, env={"FRUIT": "apple"})
        assert agent_of(third).parent() in zygotes(env)
        assert len(zygotes(env)) == 2


async def test_newly_installed_packages_are_seen(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    env = environment(tmp_path, PYTHONPATH=str(packages))
    async with warm_manager() as manager:
        await start(manager, env, tmp_path)
        (packages / "new.py").touch()
        second = await start(manager, env, tmp_path)
        assert agent_of(second).parent() == psutil.Process()


async def test_it_ends_when_no_pool_has_run_for_a_while_and_is_off_at_zero(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager(keep_warm=0.5) as manager:
        pool = await start(manager, env, tmp_path)
        await until(lambda: zygotes(env))
        await pool.stop()
        await until(lambda: not tagged(env))
    async with warm_manager(keep_warm=0) as manager:
        await start(manager, env, tmp_path)
        assert not zygotes(env)


async def test_a_killed_zygote_costs_nothing_but_time(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        await start(manager, env, tmp_path)
        second = await start(manager, env, tmp_path)
        zygotes(env)[0].kill()
        await until(lambda: not zygotes(env))
        third = await start(manager, env, tmp_path)
        assert agent_of(third).parent() == psutil.Process()
        assert second.record.state is PoolState.RUNNING
        await second.stop()
        assert second.record.state is PoolState.COMPLETED


@pytest.fixture
def warm(tmp_path: Path) -> Iterator[Notebook]:
    """Return a plain notebook that has had a pool."""
    notebook = plain_notebook(environment(tmp_path), tmp_path)
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 1")
    notebook.ok("%dist_shutdown")
    yield notebook
    notebook.close()


def test_a_notebooks_zygote_ends_with_its_kernel_or_is_dropped(warm: Notebook) -> None:
    assert [process.name() for process in tagged(warm.env)].count(ZYGOTE) == 1
    warm.ok("%dist_reset")
    wait_for(lambda: not zygotes(warm.env), "its end")
    warm.ok("%dist_init -n 1")
    assert zygotes(warm.env)
    pid = int(warm.ok("import os\nprint(os.getpid())").text)
    psutil.Process(pid).kill()
    wait_for(lambda: not tagged(warm.env), "the end of all processes")


async def test_an_agent_that_ends_as_soon_as_it_is_forked_has_an_exit_code(tmp_path: Path) -> None:
    zygote = Zygote()
    with zygote.seat.dup() as seat:
        forking = asyncio.create_task(zygote.fork(tmp_path, []))
        await asyncio.sleep(0)  # it has asked
        assert seat.recv(65536) == str(tmp_path).encode()
        with subprocess.Popen(["false"]) as agent:
            about = vars(ProcessRef.of(agent.pid))
        forked = {"folder": str(tmp_path), **about}
        for said in (forked, {"ended": agent.pid, "code": 1}):
            seat.send(json.dumps(said).encode())
        process = await forking
        assert process and await process.wait(60) == 1
    zygote.close()
