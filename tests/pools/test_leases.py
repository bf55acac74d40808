"""Pools and the GPUs that they lease: pretend ones, for which torch needs no CUDA."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from jupyter_dist_server.errors import DistError
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.gpus.telemetry import snapshot
from jupyter_dist_server.jobs.lease import holders
from jupyter_dist_server.jobs.line import in_line
from jupyter_dist_server.jobs.shared_folder import FOLDER
from jupyter_dist_server.pools.allocation import Allocator
from jupyter_dist_server.pools.client import PoolClient
from jupyter_dist_server.pools.manager import PoolManager
from jupyter_dist_server.pools.plan import new_record
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.records import PoolState
from jupyter_dist_server.pools.request import PoolRequest
from jupyter_dist_server.pools.zygote import NAME as ZYGOTE

from ..driver import Notebook, Result, Server, environment, plain_notebook, tagged, wait_for
from ..fake_nvml.build import State

MACHINE = {"gpus": 4, "name": "NVIDIA H100 80GB HBM3", "memory": 80 * 2**30}
NAMES = ["GPU-fake-0", "GPU-fake-1", "GPU-fake-2", "GPU-fake-3"]
FOUR = Inventory(tuple(Gpu(index, name, "", 0, "", "") for index, name in enumerate(NAMES)))


# -- pools of this process ------------------------------------------------------------------------


@pytest.fixture
def gpus(fake_nvml: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """Return four GPUs, and let this process lease them."""
    fake_nvml.write(**MACHINE)
    monkeypatch.setenv(FOLDER, str(tmp_path / "leases"))
    monkeypatch.setenv("JUPYTER_DIST_TEST", tmp_path.name)
    return fake_nvml


@asynccontextmanager
async def managing(keep_warm: float = 0.0) -> AsyncIterator[PoolManager]:
    manager = PoolManager(keep_warm=keep_warm)
    try:
        yield manager
    finally:
        await manager.stop_all()


async def start(manager: PoolManager, tmp_path: Path, **fields: Any) -> Pool:
    pool = await manager.create(PoolRequest(cwd=str(tmp_path), **fields))
    await follow(pool)
    return pool


async def follow(pool: Pool) -> None:
    while pool.record.state in (PoolState.PENDING, PoolState.CONFIGURING):
        await pool.changed_since(pool.record.version, 60)
    assert pool.record.state is PoolState.RUNNING, pool.record.reason


def leased() -> dict[str, str]:
    """Return which pool leases which GPU."""
    return {uuid: who["pool"] for uuid, who in holders(FOUR).items()}


def used(pool: Pool) -> list[str]:
    return [rank.gpu["uuid"] for rank in pool.record.ranks if rank.gpu]


def agent_of(pool: Pool) -> psutil.Process:
    agent = psutil.Process(pool.record.ranks[0].pid).parent()
    assert agent
    return agent


def lease_files(process: psutil.Process) -> list[str]:
    links = []
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(os.readlink(entry))
    return [link for link in links if link.endswith((".lease", ".holder"))]


def check_without_cuda(pool: Pool) -> None:
    """Check that ranks whose torch cannot use their GPUs keep these, and say so."""
    if torch.version.cuda:
        return
    assert [rank.device for rank in pool.record.ranks] == ["cpu"]
    assert (pool.record.backend, pool.record.leases) == ("gloo", "exclusive")
    (notice,) = pool.record.notices
    for words in (torch.__version__, sys.executable, "without CUDA", "on the CPU"):
        assert words in notice


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_agent_alone_holds_a_lease_from_its_start_to_its_end(
    gpus: State, tmp_path: Path
) -> None:
    async def check() -> None:
        async with managing(keep_warm=60) as manager:
            first = await start(manager, tmp_path, num_ranks=1)
            check_without_cuda(first)
            second = await start(manager, tmp_path, num_ranks=2)  # from the first one's zygote
            assert (used(first), used(second)) == (NAMES[:1], NAMES[1:3])
            assert "GPU 0 is leased by" in second.record.notices[0]
            assert first.record.id in second.record.notices[0]
            family = [process for process in tagged(dict(os.environ)) if process.pid != os.getpid()]
            (zygote,) = [process for process in family if process.name() == ZYGOTE]
            assert agent_of(second).parent() == zygote
            expected = {agent_of(first).pid: 2, agent_of(second).pid: 3}
            counts = {process.pid: len(lease_files(process)) for process in family}
            assert {pid: count for pid, count in counts.items() if count} == expected
            assert len(counts) >= 6 and lease_files(psutil.Process()) == []
            told = holders(FOUR)
            assert told[NAMES[1]]["pid"] == agent_of(second).pid

            pid = second.record.ranks[0].pid
            second.restart()
            while second.record.state is not PoolState.RUNNING or second.record.generation < 2:
                assert leased()[NAMES[2]] == second.record.id
                await second.changed_since(second.record.version, 1)
            assert second.record.ranks[0].pid != pid and used(second) == NAMES[1:3]
            assert leased()[NAMES[2]] == second.record.id

            await second.stop()
            assert leased() == {NAMES[0]: first.record.id}
            manager.zygotes.drop()

    asyncio.run(check())


def test_a_killed_agent_has_its_gpus_free_at_once(gpus: State, tmp_path: Path) -> None:
    async def check() -> None:
        async with managing() as manager:
            pool = await manager.create(PoolRequest(cwd=str(tmp_path)))
            while pool.record.progress["phase"] != "importing torch":
                await pool.changed_since(pool.record.version, 10)
            assert set(leased()) == set(NAMES)
            for process in tagged(dict(os.environ)):
                if process.name() == "dist-agent" or process.ppid() == os.getpid():
                    process.kill()
            await pool.ended.wait()
            assert pool.record.state is PoolState.FAILED
            assert leased() == {}

            pool = await start(manager, tmp_path)
            agent_of(pool).kill()
            while leased():
                await asyncio.sleep(0)
            again = await start(manager, tmp_path, num_ranks=1)
            assert used(again) == NAMES[:1]

    asyncio.run(check())


def test_ranks_on_mig_instances_see_one_each(gpus: State, tmp_path: Path) -> None:
    gpus.write(**MACHINE, **{"1.mig": "1g.10gb,1g.10gb"})

    async def check() -> None:
        async with managing() as manager:
            pool = await start(manager, tmp_path, gpu_ids=("1:1", "1:0"))
            assert [rank.gpu["label"] for rank in pool.record.ranks if rank.gpu] == ["1:1", "1:0"]
            assert "MIG" in pool.record.notices[0] and pool.record.backend == "gloo"
            client = PoolClient(Path(pool.record.folder))
            await client.connect()
            masks: dict[int, str] = {}
            code = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'], gpu_id)"

            def hear(rank: int, kind: str, content: dict[str, Any]) -> None:
                masks[rank] = masks.get(rank, "") + content.get("text", "")

            await client.execute(code, [0, 1], hear)
            await client.close()
            assert masks == {rank: f"{uuid} 1\n" for rank, uuid in enumerate(used(pool))}
            assert all(uuid.startswith("MIG-") for uuid in used(pool))

    asyncio.run(check())


OWNER = """
import asyncio, sys
from jupyter_dist_server.pools.manager import PoolManager
from jupyter_dist_server.pools.request import PoolRequest

async def main():
    pool = await PoolManager().create(PoolRequest(num_ranks=2, cwd=sys.argv[1]))
    while True:
        print(pool.record.progress["phase"], pool.record.state.value, flush=True)
        await pool.changed_since(pool.record.version, 60)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["importing torch", "starting ranks", "RUNNING"])
def test_a_killed_owner_takes_its_pools_leases_along(
    gpus: State, tmp_path: Path, moment: str
) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        assert any(moment in line for line in owner.stdout)
        assert set(leased()) == set(NAMES[:2])
        owner.kill()
    wait_for(lambda: not leased(), "the end of the leases")


# -- processes that lease nothing -----------------------------------------------------------------


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that is no rank."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait()


def ask(**fields: Any) -> Allocator:
    """Return who gets GPUs, and sees pids as outside of a container."""
    request = PoolRequest.from_json(fields)
    return Allocator(request, new_record(request), partial(snapshot, host_pids=True))


def test_a_process_that_leases_nothing_is_named_and_can_be_overridden(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    gpus.update(**{"1.process": [f"{stranger.pid},{31 * 2**30},50", f"{os.getpid()},1048576,0"]})
    process = psutil.Process(stranger.pid)
    said = f"{process.name()}, pid {stranger.pid}, user {process.username()}, 31 GB"

    async def check() -> None:
        with pytest.raises(DistError) as refused:
            await ask(gpu_ids=[1]).now()
        assert refused.value.message == f"GPU 1 is used by {said}."
        assert "--force" in refused.value.hint
        free = await ask().now()
        assert [gpu.index for gpu in free.placement.gpus if gpu] == [0, 2, 3]
        assert free.placement.notices == (f"Left out: GPU 1 is used by {said}.",)
        forced = await ask(gpu_ids=[1], force=True).now()
        free.close()
        forced.close()
        kernels = await ask(gpu_ids=[1], kernel_pid=stranger.pid).now()
        kernels.close()

    asyncio.run(check())


def test_pools_that_share_bear_each_other_and_their_processes(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    async def check() -> None:
        first = await ask(gpu_ids=[0], share=True).now()
        gpus.update(**{"0.process": f"{stranger.pid},{2**30},50"})
        second = await ask(gpu_ids=[0], share=True).now()
        assert (first.leased, second.leased) == ("shared", "shared")
        with pytest.raises(DistError, match=r"GPU 0 is leased by .* and by 1 more who share it"):
            await ask(gpu_ids=[0]).now()
        first.close()
        second.close()

    asyncio.run(check())


def test_ranks_that_are_just_ending_are_waited_for(
    gpus: State, stranger: subprocess.Popen[bytes]
) -> None:
    gpus.update(**{"0.process": f"{stranger.pid},{2**30},50"})
    stranger.kill()
    stranger.wait()

    async def check() -> None:
        asking = asyncio.create_task(ask(gpu_ids=[0]).now())
        calls = len(gpus.calls("nvmlDeviceGetComputeRunningProcesses"))
        while len(gpus.calls("nvmlDeviceGetComputeRunningProcesses")) == calls:
            await asyncio.sleep(0.01)
        gpus.write(**MACHINE)  # now the driver has noticed its end
        (await asking).close()

    asyncio.run(check())


# -- waiting in line ------------------------------------------------------------------------------


def test_who_waits_gets_the_gpus_in_the_order_of_coming(gpus: State) -> None:
    async def check() -> None:
        holder = await ask().now()
        reasons: dict[int, list[str]] = {0: [], 1: []}
        got: list[int] = []

        async def wait(number: int) -> None:
            allocator = ask(num_ranks=3, wait=60)
            with pytest.raises(DistError, match="No GPU is free"):
                await allocator.now()
            allocation = await allocator.in_line(reasons[number].append)
            got.append(number)
            allocation.close()

        waiting = []
        for number in reasons:
            waiting.append(asyncio.create_task(wait(number)))
            while not reasons[number]:
                await asyncio.sleep(0.01)
        assert "GPUs 0, 1, 2, 3 are leased by" in reasons[0][0]
        assert [len(who["gpus"]) for who in in_line()] == [4, 4]
        holder.close()
        with pytest.raises(DistError, match=r"wanted by .*, in line"):
            await ask(num_ranks=1).now()  # nobody gets past them
        await asyncio.gather(*waiting)
        assert got == [0, 1]
        assert in_line() == []

    asyncio.run(check())


def test_a_process_that_leases_nothing_is_waited_for_too_up_to_the_limit(
    gpus: State, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_dist_server.pools.allocation._READ_EVERY", 0.2)
    gpus.update(process=f"{stranger.pid},{2**30},50")

    async def check() -> None:
        allocator = ask(wait=0.3)
        with pytest.raises(DistError):
            await allocator.now()
        with pytest.raises(DistError) as refused:
            await allocator.in_line(lambda _: None)
        assert refused.value.message.startswith("Waited 0.3 s in vain. No GPU is free: GPUs 0, 1,")
        allocator, told = ask(wait=60), asyncio.Event()
        with pytest.raises(DistError):
            await allocator.now()
        getting = asyncio.create_task(allocator.in_line(lambda _: told.set()))
        await told.wait()
        gpus.write(**MACHINE)
        (await getting).close()

    asyncio.run(check())


# -- a server and a notebook without one ----------------------------------------------------------


@pytest.fixture(scope="module")
def variables(
    fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """Return what makes a process see four GPUs, and lease them."""
    folder = tmp_path_factory.mktemp("machine")
    state = State(folder / "state")
    state.write(**MACHINE)
    yield state.environment(fake_nvml_folder) | {FOLDER: str(folder / "leases")}


@pytest.fixture(scope="module")
def gpu_server(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"), **variables)
    yield server
    server.close()


@pytest.fixture(scope="module")
def _notebooks(
    gpu_server: Server, variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Notebook, Notebook]]:
    home = tmp_path_factory.mktemp("home")
    plain = plain_notebook(environment(home, **variables), tmp_path_factory.mktemp("folder"))
    both = plain, gpu_server.notebook()
    for notebook in both:
        notebook.ok("%load_ext jupyter_dist_server")
    yield both
    for notebook in both:
        notebook.close()


@pytest.fixture
def notebooks(_notebooks: tuple[Notebook, Notebook]) -> Iterator[tuple[Notebook, Notebook]]:
    """Return a notebook without a server and one with, both without a pool."""
    yield _notebooks
    for notebook in _notebooks:
        notebook.run("%dist_shutdown")


def test_free_gpus_are_taken_by_default_and_it_is_said_which_and_why(
    notebooks: tuple[Notebook, Notebook],
) -> None:
    plain, served = notebooks
    first = plain.ok("%dist_init -n 2 --map 0:3,1:0").shown
    assert "2 ranks ready on GPUs 3, 0 (gloo)" in first
    code = "import os\nprint(gpu_id, device, os.environ['CUDA_VISIBLE_DEVICES'])"
    assert plain.ok(f"%%distributed\n{code}").lines == ["[0]   3 cpu 3,0", "[1]   0 cpu 3,0"]
    second = served.ok("%dist_init").shown
    assert "2 ranks ready on GPUs 1, 2 (gloo)" in second
    assert "Left out: GPUs 0, 3 are leased by" in second
    plain.ok("%dist_shutdown")
    refused = plain.fails("%dist_init -n 2 --gpu-ids 1,2")
    assert refused.startswith("GPUs 1, 2 are leased by ") and "pool p-" in refused
    assert "Ranks share GPUs" in plain.ok("%dist_init -n 3 --gpu-ids 0,3").shown


def test_waiting_in_line_is_reported_and_ends_when_the_gpu_is_free(
    notebooks: tuple[Notebook, Notebook],
) -> None:
    plain, served = notebooks
    plain.ok("%dist_init -n 4")

    def is_waiting(result: Result) -> bool:
        return "No GPU is free: GPUs 0, 1, 2, 3 are leased by" in result.shown

    sent = served.send("%dist_init -n 1 --wait 60")
    result = served.follow(sent, until=is_waiting, act=lambda: plain.ok("%dist_shutdown"))
    assert result.status == "ok" and "1 rank ready on GPU 0" in result.shown
    assert any("Waiting for GPUs" in str(message["content"]) for _, message in result.messages)


def test_waiting_can_be_interrupted_shut_down_and_limited(
    notebooks: tuple[Notebook, Notebook], gpu_server: Server, variables: dict[str, str]
) -> None:
    plain, served = notebooks
    plain.ok("%dist_init -n 4")

    def is_waiting(result: Result) -> bool:
        return "No GPU is free" in result.shown

    sent = served.send("%dist_init --wait")
    result = served.follow(sent, until=is_waiting, act=served.interrupt)
    assert "The start was cancelled" in result.error
    assert "Waited 0.5 s in vain" in served.fails("%dist_init --wait 0.5")

    body = {"kernel_id": served.kernel_id, "wait": True}
    pool = gpu_server.api("POST", "jupyter-dist/pools", body)
    assert (pool["state"], pool["ranks"]) == ("PENDING", [])
    served.ok("%dist_shutdown")
    ended = gpu_server.api("GET", f"jupyter-dist/pools/{pool['id']}")
    assert ended["state"] == "CANCELLED"
    assert not list(Path(variables[FOLDER]).glob("*.ticket"))


def test_a_function_of_the_users_places_ranks(notebooks: tuple[Notebook, Notebook]) -> None:
    plain, served = notebooks
    served.ok("%dist_init -n 1")  # GPU 0
    code = """
import jupyter_dist_server as jds
seen = []
def emptiest_last(rank, gpus):
    seen.append([(gpu.index, gpu.memory_free > 0) for gpu in gpus])
    return gpus[-1 - rank]
pool = jds.start_pool(num_ranks=2, place=emptiest_last)
print(seen[0], [rank["gpu"]["index"] for rank in pool._record["ranks"]])
"""
    assert "[(1, True), (2, True), (3, True)] [3, 2]" in plain.ok(code).text
    plain.ok("%dist_shutdown")
    assert "returned None for rank 0" in plain.fails(
        "jds.start_pool(place=lambda rank, gpus: None)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--gpu-ids abc,def", "--gpu-ids takes integers such as 0,3, or UUIDs, not “abc”."),
        ("-n 2 --gpu-ids 0,5", "There is no GPU 5."),
        ("-n 4 --gpu-ids 0,1 --exclusive", "need 4 ranks, only 2 GPUs"),
        ("--map 0:3,0:1", "--map gives a rank two GPUs"),
        ("--map 0:3,2:1", "The map gives rank 2 a GPU, and rank 1 none."),
        ("--map zero:3", "--map takes ranks with their GPUs, such as 0:3,1:0, not “zero:3”."),
        ("--map 0:3 -n 2", "The map is for 1 rank, and the pool has 2."),
        ("--performance 0=fast", "--performance takes GPUs with scores, such as 0=100,3=110"),
        ("--min-free-memory 20", "--min-free-memory takes a size such as 20GB or 500MB, not “20”."),
        ("--min-free-memory 900GB", "No GPU has 900 GB"),
        ("--placement best", "“best” is not a way to place ranks."),
        ("--placement map", "To place ranks by a map, give it, such as 0:3,1:0."),
        ("--share --exclusive", "A pool cannot both refuse to share GPUs and share them."),
        ("--wait soon", "--wait takes a number of seconds, or nothing, not “soon”."),
        ("--wait -1", "“wait” is a number of seconds, or true to wait on"),
    ],
)
def test_bad_options_are_said(
    notebooks: tuple[Notebook, Notebook], options: str, message: str
) -> None:
    error = notebooks[0].fails(f"%dist_init {options}")
    assert message in error and len(error.splitlines()) <= 2


def test_killed_servers_and_kernels_leave_no_gpu_behind(
    notebooks: tuple[Notebook, Notebook], variables: dict[str, str], tmp_path: Path
) -> None:
    """The last test: it kills for good."""
    (tmp_path / "root").mkdir()
    server = Server(
        tmp_path / "home", tmp_path / "root", "--JupyterDistApp.orphan_grace=0", **variables
    )
    notebook = server.notebook()
    notebook.ok("%load_ext jupyter_dist_server\n%dist_init -n 4")
    plain, _ = notebooks
    assert "No GPU is free" in plain.fails("%dist_init -n 1")
    for process in (server.process.pid, int(notebook.ok("import os; print(os.getpid())").text)):
        os.kill(process, signal.SIGKILL)
    started = plain.ok("%dist_init -n 4 --wait 20")
    assert "4 ranks ready on GPUs 0, 1, 2, 3" in started.shown
    server.process.wait()
    wait_for(lambda: not tagged(server.env), "the end of the server's processes")
