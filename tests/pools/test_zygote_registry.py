"""The zygote that makes a second pool start at once, and when it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.background_tasks import Tasks
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.pools.processes.zygote_process import ZygoteProcess

from ..environment import environment, tagged
from ..notebook_driver import Notebook, plain_notebook
from ..pool_driver import agent_of
from ..waiting import PATIENCE, wait_for
from .warm import start, until, warm_manager, zygotes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks")


Warm = tuple[PoolManager, dict[str, str]]


@pytest.fixture(scope="module")
async def warm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Warm]:
    """Return a manager and the environment of its zygote; tests leave both as they are."""
    env = environment(tmp_path_factory.mktemp("home"))
    async with warm_manager() as manager:
        yield manager, env
    await until(lambda: not tagged(env))


async def test_both_pools_come_from_one_zygote(warm: Warm, tmp_path: Path) -> None:
    manager, env = warm
    for _ in range(10):  # what runs beside us may write into the checkout, as installing does
        first = await start(manager, env, tmp_path)
        of_first = agent_of(first).parent()
        assert of_first in zygotes(env)
        await first.stop()
        (owners_end,) = manager.zygotes._zygotes.values()
        owners_end._socket.send(b'{"folder": 3}')  # it reports that, and lives on
        second = await start(manager, env | {"JPY_SESSION_NAME": "two.ipynb"}, tmp_path)
        (zygote,) = zygotes(env)
        assert agent_of(second).parent() == zygote
        if zygote == of_first:
            break
        await second.stop()
    assert zygote == of_first
    assert os.listdir(f"/proc/{zygote.pid}/task") == [str(zygote.pid)]
    assert zygote.memory_full_info().uss < 0.5 * zygote.memory_info().rss
    held = [process_file.path for process_file in zygote.open_files()]
    assert not [name for name in held if second.record.folder in name]
    await second.stop()


async def test_pools_that_run_together_share_a_zygote_and_end_alone(
    warm: Warm, tmp_path: Path
) -> None:
    manager, env = warm
    one, two = await asyncio.gather(*(start(manager, env, tmp_path) for _ in range(2)))
    assert agent_of(one).parent() == agent_of(two).parent() == zygotes(env)[0]
    agent_of(one).kill()
    await one.ended.wait()
    assert one.record.reason and one.record.reason.code == "agent_failed"
    assert two.record.state is PoolState.RUNNING
    await two.stop()


async def test_an_agent_that_ends_as_soon_as_it_is_forked_has_an_exit_code(
    warm: Warm, tmp_path: Path
) -> None:
    manager, env = warm
    pool = await start(manager, env, tmp_path, num_ranks=1)
    (zygote,) = manager.zygotes._zygotes.values()
    agent = await zygote.start_agent(tmp_path / "nowhere", [])
    assert agent and await agent.wait(60) == agent.poll() == 1
    await pool.stop()


async def test_other_variables_need_a_zygote_of_their_own(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        one = await start(manager, env, tmp_path)
        other = await start(manager, env, tmp_path, env={"FRUIT": "apple"})
        third = await start(manager, env, tmp_path, env={"FRUIT": "apple"})
        assert agent_of(other).parent() == agent_of(third).parent() != agent_of(one).parent()
        assert len(zygotes(env)) == 2


async def test_newly_installed_packages_are_seen(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    env = environment(tmp_path, PYTHONPATH=str(packages))
    async with warm_manager() as manager:
        first = await start(manager, env, tmp_path)
        (packages / "new.py").touch()
        second = await start(manager, env, tmp_path)
        assert agent_of(second).parent() != agent_of(first).parent()


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
        second = await start(manager, env, tmp_path)
        (killed,) = zygotes(env)
        killed.kill()
        third = await start(manager, env, tmp_path)
        assert agent_of(third).parent() in zygotes(env)
        assert second.record.state is PoolState.RUNNING
        await second.stop()
        assert second.record.state is PoolState.COMPLETED


IMPOSTOR = """#!{python}
import json, os, socket, sys
given = json.loads(sys.argv[-1])
owner = socket.socket(fileno=given["socket"])
for said in (b"junk", b"[" * 5000, b'{{"says": "hello"}}', b'{{"says": "exited", "pid": 1}}'):
    owner.send(said)
owner.send(b'{{"says": "ready"}}')
asked = json.loads(owner.recv(4096))
owner.send(b'{{"says": "started", "folder": 7}}')
owner.send(json.dumps({{"says": "refused", "folder": asked["folder"], "why": "to see"}}).encode())
owner.recv(1)
"""
"""Says what no zygote would say, and then what it should."""


async def test_what_no_zygote_would_say_is_logged_and_dropped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    python, tasks = tmp_path / "python", Tasks()
    python.write_text(IMPOSTOR.format(python=sys.executable))
    python.chmod(0o700)
    with open(tmp_path / "log", "wb") as log:
        zygote = ZygoteProcess(str(python), dict(os.environ), str(tmp_path), log.fileno(), tasks)
        assert await zygote.start_agent(tmp_path, [log.fileno()]) is None
    assert not zygote.is_usable
    assert caplog.text.count("said nothing that is understood") == 5
    zygote.close()
    await zygote.exit_code()
    await tasks.end(PATIENCE)


@pytest.fixture
def warm_notebook(tmp_path: Path) -> Iterator[Notebook]:
    """Return a plain notebook that has had a pool."""
    notebook = plain_notebook(environment(tmp_path), tmp_path)
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 1")
    notebook.ok("%dist_shutdown")
    yield notebook
    notebook.close()


def test_a_notebooks_zygote_ends_with_its_kernel_or_is_dropped(
    warm_notebook: Notebook,
) -> None:
    assert len(zygotes(warm_notebook.env)) == 1
    warm_notebook.ok("%dist_reset")
    wait_for(lambda: not zygotes(warm_notebook.env), "its end")
    warm_notebook.ok("%dist_init -n 1")
    assert zygotes(warm_notebook.env)
    pid = int(warm_notebook.ok("import os\nprint(os.getpid())").text)
    psutil.Process(pid).kill()
    wait_for(lambda: not tagged(warm_notebook.env), "the end of all processes")


async def test_without_a_zygote_to_keep_it_becomes_the_agent(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager(keep_warm=0) as manager:
        pool = await start(manager, env, tmp_path, start_method="spawn")
        assert agent_of(pool).parent() == psutil.Process()
        agent_of(pool).kill()
        await pool.ended.wait()
        assert pool.record.reason and pool.record.reason.code == "agent_failed"
    await until(lambda: not tagged(env))


async def test_a_start_cancelled_while_torch_is_imported_leaves_no_process(tmp_path: Path) -> None:
    env = environment(tmp_path)
    async with warm_manager() as manager:
        fields = {"num_ranks": 1, "cwd": str(tmp_path), "base_env": env}
        pool = await manager.create(PoolRequest(**fields, python=sys.executable))
        while pool.record.progress.phase != "importing torch":
            await pool.changed_since(pool.record.version, 60)
        await pool.stop()
        assert not Path(pool.record.folder).exists()
        await until(lambda: not tagged(env))
        assert agent_of(await start(manager, env, tmp_path)).parent() in zygotes(env)
