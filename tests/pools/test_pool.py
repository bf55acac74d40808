"""One pool and its processes: what is forked, what is shared, what is left."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client import BlockingKernelClient

from jupyter_dist_server.client.pool_client import Execution
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.pool_folder import SOCKET_PATH_LIMIT, create_folder
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.discovery import sweep
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..environment import environment, tagged
from ..network import own_network
from ..notebook_driver import plain_notebook
from ..pool_driver import (
    WarmManager,
    client_of,
    follow,
    linux,
    processes,
    request,
    running,
    text_of,
)
from ..waiting import PATIENCE, wait_for


async def test_states_follow_slurms_words(tmp_path: Path) -> None:
    manager, seen = WarmManager(), []
    manager.listen(lambda pool: seen.append(pool.record.state.value), lambda _: None)
    pool = await manager.create(request(tmp_path))
    assert pool.record.state is PoolState.PENDING
    await follow(pool)
    await manager.stop_all()
    assert list(dict.fromkeys(seen)) == ["CONFIGURING", "RUNNING", "COMPLETING", "COMPLETED"]
    assert pool.record.version == len(seen)


@linux
async def test_the_agent_stays_single_threaded_and_its_ranks_share_torchs_pages(
    tmp_path: Path,
) -> None:
    async with running(request(tmp_path, num_ranks=4)) as pool:
        agent = processes(pool)[0]
        assert os.listdir(f"/proc/{agent.pid}/task") == [str(agent.pid)]
        assert pool.record.start_method == "fork" and pool.record.notices == []
        full = [psutil.Process(rank.pid).memory_full_info() for rank in pool.record.ranks]
        # Proportional set size counts a shared page once; four copies of torch would be 100 %.
        assert sum(m.pss for m in full) < 0.5 * sum(m.rss for m in full)


async def test_threads_in_the_agent_make_it_spawn_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    async with running(request(tmp_path, env={"PYTHONPATH": str(tmp_path)})) as pool:
        assert pool.record.start_method == "spawn"
        assert "the ranks were spawned" in pool.record.notices[0]
        assert "2 threads" in pool.record.notices[0]


async def test_every_rank_is_a_session_of_its_own_with_different_random_numbers(
    tmp_path: Path,
) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        code = "import os, random, numpy\nprint(os.getsid(0) == os.getpid())\n"
        assert await text_of(client, code) == "True\n"
        for drawn in ("random.random()", "numpy.random.rand()", "torch.rand(1)"):
            code = f"import random, numpy\nprint({drawn})"
            assert await text_of(client, code, 0) != await text_of(client, code, 1)


async def test_nothing_listens_on_an_outer_address(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool:
        listening = [
            connection.laddr.ip
            for process in processes(pool)
            for connection in process.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        ]
        assert listening and all(host.startswith("127.") for host in listening)


async def test_thread_limits_of_the_user_reach_the_ranks(tmp_path: Path) -> None:
    limits = {"OMP_NUM_THREADS": "2"}
    async with running(request(tmp_path, env=limits)) as pool, client_of(pool) as client:
        code = "import os\nprint(os.environ['OMP_NUM_THREADS'], torch.get_num_threads())"
        assert await text_of(client, code) == "2 2\n"
        assert pool.record.start_method == "fork"


async def test_two_clients_do_not_steal_each_others_replies(tmp_path: Path) -> None:
    async with (
        running(request(tmp_path)) as pool,
        client_of(pool) as one,
        client_of(pool) as two,
    ):
        for _ in range(5):
            first = text_of(one, "print('one')")
            second = text_of(two, "print('two')")
            assert await asyncio.gather(first, second) == ["one\n", "two\n"]


async def test_clients_can_connect_while_ranks_publish_without_pause(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        code = "import sys, time\nwhile True:\n    print('x')\n    sys.stdout.flush()\n"
        code += "    time.sleep(0.001)"
        begun: set[int] = set()
        busy = asyncio.create_task(client.execute(code, [0, 1], lambda rank, *_: begun.add(rank)))
        await asyncio.to_thread(wait_for, lambda: begun == {0, 1}, "both ranks to begin")
        for _ in range(8):
            async with client_of(pool):
                pass
        client.link.interrupt([0, 1])
        assert {reply.status for reply in (await busy).values()} == {"error"}


async def test_cancelling_leaves_the_cells_of_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("answer", "instant"):  # no rank answers in time
        monkeypatch.setitem(vars(patience), limit, 0.0)
    async with (
        running(request(tmp_path, num_ranks=1)) as pool,
        client_of(pool) as one,
        client_of(pool) as two,
    ):
        begun, queued = asyncio.Event(), asyncio.Event()
        executions: list[Execution] = []

        def started(execution: Execution) -> None:
            executions.append(execution)
            queued.set()

        code = "import time\nprint('in')\ntime.sleep(1)\nmark = 1"
        first = asyncio.create_task(one.execute(code, [0], lambda *_: begun.set()))
        await begun.wait()
        late = two.execute("mark = 2", [0], lambda *_: None, started=started)
        second = asyncio.create_task(late)
        await queued.wait()
        two.stop(executions[0])
        assert (await first)[0].status == "ok"
        assert (await second)[0].status == "aborted"
        assert await text_of(one, "print(mark)") == "1\n"


async def test_forked_workers_do_not_double_output(tmp_path: Path) -> None:
    code = """
import multiprocessing, os
def work(i):
    os.write(1, f"descriptor {i}\\n".encode())
    print("print", i, flush=True)
context = multiprocessing.get_context("fork")
workers = [context.Process(target=work, args=(i,)) for i in range(3)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""
    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        said = await text_of(client, code)  # pieces of lines may mix, nothing may double
        assert [said.count(f"descriptor {i}") for i in range(3)] == [1, 1, 1]


async def test_files_beside_the_notebook_do_not_shadow_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise RuntimeError('shadowed')")
    for method in ("fork", "spawn"):
        async with running(request(tmp_path, start_method=method, num_ranks=1), cold=True):
            pass


async def test_status_is_answered_while_a_rank_is_stuck(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        begun = asyncio.Event()
        work = client.execute("print('in')\ndist.barrier()", [0], lambda *event: begun.set())
        stuck = asyncio.create_task(work)
        await begun.wait()
        status = await client.status(PATIENCE)
        assert {rank: said.state for rank, said in status.items()} == {0: "busy", 1: "idle"}
        assert status[0].report.memory > 50e6
        await client.execute("dist.barrier()", [1], lambda *_: None)
        assert (await stuck)[0].status == "ok"


async def test_a_rank_is_a_kernel_for_any_other_client(tmp_path: Path) -> None:
    def use_as_kernel(connection: Path) -> None:
        assert connection.stat().st_mode & 0o777 == 0o600
        client = BlockingKernelClient(connection_file=str(connection))
        client.load_connection_file()
        client.start_channels()
        client.wait_for_ready(timeout=PATIENCE)
        shown: list[dict[str, Any]] = []
        reply = client.execute_interactive(
            "alphabet = rank", timeout=PATIENCE, output_hook=shown.append
        )
        assert reply["content"]["status"] == "ok"
        client.complete("alpha", 5)
        assert "alphabet" in client.get_shell_msg(timeout=PATIENCE)["content"]["matches"]
        client.inspect("alphabet", 3)
        assert client.get_shell_msg(timeout=PATIENCE)["content"]["found"]
        client.stop_channels()

    async with running(request(tmp_path)) as pool:
        await asyncio.to_thread(use_as_kernel, Path(pool.record.folder, "rank-1.json"))


def test_a_kernel_killed_without_a_server_leaves_nothing_within_two_seconds(
    tmp_path: Path,
) -> None:
    env = environment(tmp_path)
    notebook = plain_notebook(env, tmp_path)
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    folder = notebook.ok("import jupyter_dist_server, os\nprint(os.environ['TMPDIR'])").text.strip()
    assert list(Path(folder).glob("jdist-*"))
    kernel = min(tagged(env), key=lambda process: process.create_time())
    kernel.kill()
    wait_for(lambda: not tagged(env), "the end of all processes")
    wait_for(lambda: not list(Path(folder).glob("jdist-*")), "the folder's end")
    notebook.close()


async def failed(pool_request: PoolRequest) -> Pool:
    """Try to start a pool that cannot start; check that nothing is left."""
    before = set(psutil.Process().children(recursive=True))
    pool = await PoolManager().create(pool_request)
    await follow(pool)
    await pool.ended.wait()
    assert pool.record.state is PoolState.FAILED and pool.record.reason
    assert set(psutil.Process().children(recursive=True)) <= before
    assert not pool.record.folder or not Path(pool.record.folder).exists()
    return pool


async def test_an_interpreter_that_is_not_there(tmp_path: Path) -> None:
    reason = (await failed(request(tmp_path, python="/no/such/python"))).record.reason
    assert reason and reason.code == "agent_failed"
    assert "/no/such/python cannot be started in " in reason.message


async def test_an_interpreter_without_our_package(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    reason = (await failed(request(tmp_path, python=python))).record.reason
    assert reason and reason.code == "package_missing"
    assert f"environment ({python})." in reason.message
    assert reason.hint.endswith("-m pip install jupyter-dist-server")


async def test_an_agent_that_crashes_says_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("import os, sys\nprint('argh', file=sys.stderr)\nos.abort()")
    reason = (await failed(request(tmp_path, env={"PYTHONPATH": str(tmp_path)}))).record.reason
    assert reason and reason.message.startswith("The pool's agent was killed by signal 6")
    assert "argh" in reason.stderr


@pytest.mark.root
async def test_a_loopback_interface_that_is_down_is_said(tmp_path: Path) -> None:
    with own_network(up=False):
        pool = await PoolManager().create(request(tmp_path))
        await follow(pool)
    assert pool.record.reason and pool.record.reason.code == "no_loopback"
    assert "127.0.0.1: Network is unreachable." in pool.record.reason.message


async def test_a_path_too_long_for_a_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = Path(tempfile.gettempdir())
    longest = SOCKET_PATH_LIMIT - len("/jdist-12345678/agent.sock") - len(f"{short}/")
    for length in (longest, longest + 1):
        long = short / ("x" * length)
        long.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(long))
        if length == longest:
            async with running(request(tmp_path, num_ranks=1)):
                pass
    reason = (await failed(request(tmp_path))).record.reason
    assert reason and reason.code == "path_too_long"
    assert "Set the environment variable TMPDIR to a shorter path" in reason.hint


async def test_a_pools_folder_is_locked_so_that_systemd_tmpfiles_leaves_it_alone(
    tmp_path: Path,
) -> None:
    async with running(request(tmp_path)) as pool:
        folder = os.open(pool.record.folder, os.O_RDONLY)
        try:
            with pytest.raises(BlockingIOError):  # what systemd-tmpfiles tries, too
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(folder)


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Have pools in a temporary folder of 16 pages and 8 files; `tmp_path` is elsewhere."""
    with tempfile.TemporaryDirectory(prefix="jt-full-") as small:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=8", "tmpfs", small]
        if subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("this container may not mount")
        monkeypatch.setattr(tempfile, "tempdir", small)
        try:
            yield Path(small)
        finally:
            subprocess.run(["umount", small], check=True)


@pytest.mark.root
async def test_no_file_can_be_made_in_the_temporary_folder(
    small_disk: Path, tmp_path: Path
) -> None:
    names = {f"file-{number}" for number in range(7)}
    for name in names:
        (small_disk / name).touch()
    reason = (await failed(request(tmp_path))).record.reason
    assert reason and reason.code == "folder_unwritable"
    assert "cannot be written: No space left on device." in reason.message
    assert set(os.listdir(small_disk)) == names


@pytest.mark.root
@pytest.mark.parametrize("free_pages", range(3))
async def test_the_disk_of_the_temporary_folder_is_full(
    small_disk: Path, tmp_path: Path, free_pages: int
) -> None:
    (small_disk / "full").write_bytes(bytes((16 - free_pages) * 4096))
    reason = (await failed(request(tmp_path))).record.reason
    assert reason and "No space left on device" in reason.message, reason
    assert os.listdir(small_disk) == ["full"]


def test_folders_of_killed_pools_are_swept_but_not_those_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory(prefix="jt-") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        sockets = {name: socket.socket(socket.AF_UNIX) for name in ("dead", "alive", "young")}
        for name, listener in sockets.items():
            folder = Path(short, f"jdist-{name}")
            folder.mkdir(mode=0o700)
            listener.bind(str(folder / "agent.sock"))
            listener.listen()
            if name != "alive":
                listener.close()
            if name != "young":
                os.utime(folder, (0, 0))
        for name in ("empty", "fresh", "without-socket"):
            Path(short, f"jdist-{name}").mkdir(mode=0o700)
        Path(short, "jdist-without-socket", "rank-0.log").touch()
        for name in ("empty", "without-socket"):
            os.utime(Path(short, f"jdist-{name}"), (0, 0))
        sweep()
        created = create_folder()
        assert set(Path(short).iterdir()) == {
            created,
            Path(short, "jdist-alive"),
            Path(short, "jdist-young"),
            Path(short, "jdist-fresh"),
            Path(short, "jdist-without-socket"),
        }
        sockets["alive"].close()


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.1, 0.3])
async def test_a_stop_in_the_middle_of_a_restart_leaves_nothing(
    tmp_path: Path, delay: float
) -> None:
    async with running(request(tmp_path, num_ranks=4)) as pool:
        await pool.commands.restart()
        await asyncio.sleep(delay)


async def test_a_cancelled_start_is_cancelled(tmp_path: Path) -> None:
    pool = await PoolManager().create(request(tmp_path))
    await pool.changed_since(0, 10)
    assert pool.record.state is PoolState.CONFIGURING
    await pool.stop()
    assert pool.record.state is PoolState.CANCELLED
    assert not Path(pool.record.folder).exists()


async def test_a_released_start_is_cancelled_as_it_has_no_agent_to_go_on(tmp_path: Path) -> None:
    manager = PoolManager()
    pool = await manager.create(request(tmp_path))
    await pool.changed_since(0, 10)
    assert pool.record.state is PoolState.CONFIGURING and not pool.agent.process
    await manager.release_all()
    assert pool.record.state is PoolState.CANCELLED
    assert not Path(pool.record.folder).exists()


@pytest.mark.parametrize("end", ["stop_all", "release_all"])
async def test_no_pool_starts_after_the_end_of_all(tmp_path: Path, end: str) -> None:
    manager = PoolManager()
    start = asyncio.create_task(manager.create(request(tmp_path)))
    await asyncio.sleep(0)  # now it has begun
    await getattr(manager, end)()
    with pytest.raises(DistError) as refused:
        await start
    assert refused.value.code == "start_cancelled"
    assert manager.pools == {}


async def test_one_pool_per_kernel(tmp_path: Path) -> None:
    manager = PoolManager()
    await manager.create(request(tmp_path, kernel_id="k"))
    with pytest.raises(DistError, match=re.escape("a pool of 2 ranks is ")):
        await manager.create(request(tmp_path, kernel_id="k"))
    await manager.stop_for_kernel("k")
    assert manager.pools == {}


async def test_a_kernel_that_is_shut_down_while_gpus_are_listed_gets_no_pool(
    tmp_path: Path,
) -> None:
    manager = PoolManager()
    start = asyncio.create_task(manager.create(request(tmp_path, kernel_id="k")))
    await asyncio.sleep(0)  # now it has begun
    await manager.stop_for_kernel("k")
    with pytest.raises(DistError) as refused:
        await start
    assert refused.value.code == "start_cancelled"
    assert manager.pools == {}
