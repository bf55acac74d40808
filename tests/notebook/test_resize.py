"""%dist_resize: ranks join a running pool or leave it, and the others keep their variables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.jobs.leases.lease import Lease, holders, running

from ..environment import environment
from ..fake_nvml.build import State
from ..notebook_driver import Notebook, plain_notebook
from ..server_driver import Server
from ..waiting import wait_for

MACHINE = Inventory(tuple(Gpu(i, f"GPU-fake-{i}", "", 0, "", "") for i in range(4)))
SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t), world_size, kept)"


def said(notebook: Notebook, cell: str) -> list[str]:
    return [" ".join(line.split()) for line in notebook.ok(cell).lines]


def test_ranks_join_and_leave(ranks: Notebook) -> None:
    ranks.ok("%%distributed\nkept = rank + 10")
    grown = ranks.ok("%dist_resize 4")
    assert "4 ranks ready on the CPU" in grown.shown
    ranks.ok("%%rank 2-3\nkept = rank + 20")
    assert said(ranks, SUM) == ["[0] 4 4 10", "[1] 4 4 11", "[2] 4 4 22", "[3] 4 4 23"]
    environment = (
        "%%distributed\nimport os\nprint(os.environ['WORLD_SIZE'], os.environ['LOCAL_RANK'])"
    )
    assert said(ranks, environment) == [f"[{rank}] 4 {rank}" for rank in range(4)]
    shrunk = ranks.ok("%dist_resize 1")
    assert "1 rank ready on the CPU" in shrunk.shown
    assert said(ranks, SUM) == ["[0] 1 1 10"]
    ranks.ok("%dist_resize 2")
    ranks.ok("%%rank 1\nkept = 'new'")
    assert said(ranks, SUM) == ["[0] 2 2 10", "[1] 2 2 new"]


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> State:
    """Return a machine with four GPUs."""
    state = State(tmp_path_factory.mktemp("nvml") / "state")
    state.write(gpus=4, name="NVIDIA H100", memory=80 * 2**30, utilization=0)
    return state


@pytest.fixture(scope="module")
def leases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for leases that is this module's own."""
    folder = tmp_path_factory.mktemp("leases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        yield folder


@pytest.fixture(scope="module")
def kernel(
    gpus: State, leases: Path, fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    variables = gpus.environment(fake_nvml_folder) | {FOLDER: str(leases)}
    env = environment(tmp_path_factory.mktemp("home"), **variables)
    notebook = plain_notebook(env, tmp_path_factory.mktemp("folder"))
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


@pytest.fixture
def on_gpus(kernel: Notebook) -> Iterator[Notebook]:
    """Return a notebook with ranks on GPUs 0 and 1 of four."""
    kernel.ok("%dist_init -n 2")
    kernel.ok("%%distributed\nkept = rank + 10")
    yield kernel
    kernel.run("%dist_shutdown")


def leased() -> list[int]:
    """Return the GPUs that somebody leases."""
    return [int(uuid[-1]) for uuid in sorted(holders(MACHINE))]


MASKS = "%%distributed\nimport os\nprint(gpu_id, os.environ['CUDA_VISIBLE_DEVICES'])"


def test_new_ranks_lease_free_gpus_and_those_that_leave_release_theirs(on_gpus: Notebook) -> None:
    assert leased() == [0, 1]
    on_gpus.ok("%dist_resize 4")
    assert leased() == [0, 1, 2, 3]
    assert [len(one.gpus) for one in running()] == [4], "one lease for the pool"
    on_gpus.ok("%%rank 2-3\nkept = rank + 20")
    assert said(on_gpus, SUM) == ["[0] 4 4 10", "[1] 4 4 11", "[2] 4 4 22", "[3] 4 4 23"]
    assert said(on_gpus, MASKS) == ["[0] 0 0,1", "[1] 1 0,1", "[2] 2 0,1,2,3", "[3] 3 0,1,2,3"]
    on_gpus.ok("%dist_resize 3")
    assert leased() == [0, 1, 2]
    on_gpus.ok("%dist_resize 1")
    assert leased() == [0]
    on_gpus.ok("%dist_resize 2")
    assert leased() == [0, 1]
    assert said(on_gpus, MASKS)[1] == "[1] 1 0,1"
    on_gpus.ok("%dist_shutdown")
    assert leased() == []


def lease(*numbers: int) -> Lease:
    who = Leaseholder(pid=os.getpid(), pool="p-other", notebook="other.ipynb", host="here")
    return Lease.take([f"GPU-fake-{number}" for number in numbers], who)


def test_a_pool_that_cannot_grow_stays_as_it_is(on_gpus: Notebook) -> None:
    with closing(lease(3)):
        refused = on_gpus.fails("%dist_resize 4")
        assert "Only 1 of 2 GPUs is free for 2 ranks: GPU 3 is leased by" in refused
        assert "Wait with --wait, or add 1: %dist_resize 3." in refused
        waited = on_gpus.fails("%dist_resize 4 --wait 1")
        assert "Timed out after 1 s waiting for GPUs" in waited
    assert leased() == [0, 1]
    on_gpus.ok("%%distributed\nassert kept == rank + 10 and world_size == 2")


def test_a_pool_waits_in_line_for_more_gpus(on_gpus: Notebook) -> None:
    other = lease(3)
    grown = on_gpus.run(
        "%dist_resize 4 --wait",
        until=lambda result: "From 2 to 4 ranks" in result.shown,
        act=other.close,
    )
    assert grown.status == "ok", grown.shown
    assert leased() == [0, 1, 2, 3]
    assert said(on_gpus, SUM.replace(", kept", "")) == ["[0-3] 4 4"]


def test_stop_leaves_the_line(on_gpus: Notebook) -> None:
    with closing(lease(3)):
        on_gpus.run(
            "%dist_resize 4 --wait",
            until=lambda result: "From 2 to 4 ranks" in result.shown,
            act=on_gpus.interrupt,
        )
    on_gpus.ok("%%distributed\nassert kept == rank + 10 and world_size == 2")
    assert leased() == [0, 1]


def test_ranks_that_share_a_gpu_go_on_to_do_so(kernel: Notebook) -> None:
    kernel.ok("%dist_init -n 2 -g 3")
    kernel.ok("%dist_resize 3")
    assert said(kernel, "%%distributed\nprint(gpu_id, world_size)") == ["[0-2] 3 3"]
    assert leased() == [3]
    kernel.ok("%dist_shutdown")


def test_a_pool_that_has_all_gpus_is_told(on_gpus: Notebook) -> None:
    on_gpus.ok("%dist_resize 4")
    assert "The pool has all GPUs of this machine." in on_gpus.fails("%dist_resize 5")


def test_models_wrapped_before_are_named(on_gpus: Notebook) -> None:
    on_gpus.ok(
        "%%distributed\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
        "net = DDP(torch.nn.Linear(2, 2))"
    )
    text = on_gpus.ok("%dist_resize 3").text
    assert "`net` is wrapped for the ranks that the pool had before: wrap it again" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("0", "The number of ranks must be from 1 to 1024, not 0"),
        ("1025", "must be from 1 to 1024"),
        ("two", "invalid int value"),
        ("9", "Ranks must not share GPUs: need 7 ranks, only 2 GPUs."),
    ],
)
def test_what_cannot_be_is_refused(on_gpus: Notebook, options: str, message: str) -> None:
    assert message in on_gpus.fails(f"%dist_resize {options}")
    on_gpus.ok("%%distributed\nassert kept == rank + 10 and world_size == 2")


def test_fewer_ranks_are_enough_to_start_with(kernel: Notebook) -> None:
    with closing(lease(1, 2)):
        refused = kernel.fails("%dist_init -n 4 --min-ranks 3")
        assert "Only 2 of 4 GPUs are free for 4 ranks" in refused
        started = kernel.ok("%dist_init -n 4 --min-ranks 2").shown
        assert "2 ranks of 4 started: so many GPUs are free." in started
        again = kernel.ok("%dist_init -n 4 --min-ranks 2").text
        assert "This notebook's pool of 2 ranks is already running" in again
    assert leased() == [0, 3]
    kernel.ok("%dist_resize 4")
    assert leased() == [0, 1, 2, 3]
    kernel.ok("%dist_shutdown")


def test_what_goes_with_no_least_number_is_refused(kernel: Notebook) -> None:
    assert "is more than the number of ranks" in kernel.fails("%dist_init -n 2 --min-ranks 3")
    assert "“map”" in kernel.fails("%dist_init -n 2 --map 0:0,1:1 --min-ranks 1")
    refused = kernel.fails("%dist_init -n 2 -g 0,1 --min-ranks 1")
    assert "does not go with “gpu_ids”" in refused and "--placement cycle" in refused


def test_a_cell_that_runs_is_waited_for(new_notebook: Notebook, server: Server) -> None:
    new_notebook.ok("%load_ext jupyter_dist_server\n%dist_init -n 2")
    (found,) = re.findall(r"Pool (p-\w+):", new_notebook.ok("%dist_status").shown)

    def pool() -> Any:
        return server.api("GET", f"jupyter-dist/pools/{found}")

    def resize() -> None:
        server.api("POST", f"jupyter-dist/pools/{found}/resize", {"num_ranks": 3})
        wait_for(lambda: pool()["resizing"]["reason"] == "The ranks run a cell.", "its turn")
        new_notebook.interrupt()

    new_notebook.run(
        "%%distributed\nimport time\nprint('on', flush=True)\ntime.sleep(600)",
        until=lambda result: "on" in result.text,
        act=resize,
    )
    wait_for(lambda: pool()["resizing"] is None, "the end of the resize")
    assert pool()["world_size"] == 3
    new_notebook.ok("%%distributed\nassert world_size == 3")
    new_notebook.ok("%dist_shutdown")


def agent() -> psutil.Process:
    """Return the pool's agent, which leases GPU 0."""
    pid = holders(MACHINE)["GPU-fake-0"].pid
    assert pid
    return psutil.Process(pid)


def test_a_rank_that_dies_as_it_joins_can_be_replaced(on_gpus: Notebook) -> None:
    def new_rank() -> psutil.Process | None:
        return next((one for one in agent().children() if one.name() == "dist-rank-3"), None)

    def kill() -> None:
        wait_for(new_rank, "the new rank").kill()

    on_gpus.run(
        "%dist_resize 4", until=lambda result: "Ranks start or end." in result.shown, act=kill
    )
    state = on_gpus.ok("%dist_status").shown
    assert "4 ranks" in state
    on_gpus.ok("%dist_restart --ranks 3")
    on_gpus.ok("%%rank 2-3\nkept = rank + 20")
    assert said(on_gpus, SUM) == ["[0] 4 4 10", "[1] 4 4 11", "[2] 4 4 22", "[3] 4 4 23"]
    assert leased() == [0, 1, 2, 3]


def test_an_agent_that_dies_meanwhile_leaves_nothing(on_gpus: Notebook) -> None:
    failed = on_gpus.run(
        "%dist_resize 4",
        until=lambda result: "Ranks start or end." in result.shown,
        act=lambda: agent().kill(),
    )
    assert failed.status == "error", failed.shown
    wait_for(lambda: leased() == [], "the end of the leases")
    on_gpus.ok("%dist_init -n 2")
    on_gpus.ok("%%distributed\nassert world_size == 2")
