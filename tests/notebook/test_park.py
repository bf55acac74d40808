"""%dist_park and %dist_resume, with a driver that is pretended; never run on a GPU."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.jobs.leases.lease import Lease, holders

from ..environment import environment
from ..fake_cuda.build import FakeCuda
from ..fake_nvml.build import State
from ..notebook_driver import Notebook, plain_notebook
from ..waiting import wait_for

MACHINE = Inventory(tuple(Gpu(i, f"GPU-fake-{i}", "", 0, "", "") for i in range(4)))
SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t), kept)"
FINE = ["[0] 2 10", "[1] 2 11"]


def said(notebook: Notebook, cell: str) -> list[str]:
    return [" ".join(line.split()) for line in notebook.ok(cell).lines]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory, fake_nvml_folder: Path) -> FakeCuda:
    return FakeCuda(tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module")
def leases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for leases that is this module's own."""
    folder = tmp_path_factory.mktemp("leases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        yield folder


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> State:
    """Return a machine with four GPUs."""
    state = State(tmp_path_factory.mktemp("nvml") / "state")
    state.write(gpus=4, name="NVIDIA H100", memory=80 * 2**30, utilization=0)
    return state


@pytest.fixture(scope="module")
def kernel(
    driver: FakeCuda,
    gpus: State,
    leases: Path,
    fake_nvml_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Notebook]:
    variables = gpus.environment(fake_nvml_folder) | driver.environment | {FOLDER: str(leases)}
    variables["LD_LIBRARY_PATH"] = f"{driver.folder}:{fake_nvml_folder}"
    env = environment(tmp_path_factory.mktemp("home"), **variables)
    notebook = plain_notebook(env, tmp_path_factory.mktemp("folder"))
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


@pytest.fixture
def pool(kernel: Notebook, driver: FakeCuda) -> Iterator[Notebook]:
    """Return a notebook with ranks on GPUs 0 and 1 of four, which can be parked."""
    driver.script()
    driver.calls()
    kernel.ok("%dist_init -n 2 --park-after 1:00:00")
    kernel.ok("%%distributed\nkept = rank + 10")
    yield kernel
    driver.script()
    kernel.run("%dist_shutdown")


def leased() -> list[int]:
    """Return the GPUs that somebody leases."""
    return [int(uuid[-1]) for uuid in sorted(holders(MACHINE))]


def lease(*numbers: int) -> Lease:
    who = Leaseholder(pid=os.getpid(), pool="p-other", notebook="other.ipynb", host="here")
    return Lease.take([f"GPU-fake-{number}" for number in numbers], who)


def states(driver: FakeCuda) -> dict[str, int]:
    """Return the last state of each rank, by the driver's log."""
    return {line.split()[0]: int(line.split()[3]) for line in driver.calls()}


def test_a_parked_pool_gives_its_gpus_back_and_the_next_cell_brings_it_back(
    pool: Notebook, driver: FakeCuda
) -> None:
    parked = pool.ok("%dist_park").shown
    assert "never on a GPU" in parked
    assert "Parked: GPUs 0, 1 can be used by others" in parked
    assert (leased(), states(driver)) == ([], {"0": 2, "1": 2})
    assert "Parked: GPUs 0, 1" in pool.ok("%dist_status").shown
    assert said(pool, SUM)[-2:] == FINE
    assert (leased(), states(driver)) == ([0, 1], {"0": 0, "1": 0})
    pool.ok("%dist_park")
    pool.ok("%dist_resume")
    assert said(pool, SUM) == FINE


def test_a_cell_waits_in_line_for_the_same_gpus(pool: Notebook) -> None:
    pool.ok("%dist_park")
    other = lease(1)
    waited = pool.run(
        SUM,
        until=lambda result: (
            "Resuming the pool: GPU 1 is leased by" in result.shown
            and "You are number 1 in line" in result.shown
        ),
        act=other.close,
    )
    assert waited.status == "ok", waited.shown
    assert leased() == [0, 1]
    assert said(pool, SUM) == FINE


def test_stop_drops_the_cell_and_the_pool_stays_parked(pool: Notebook, driver: FakeCuda) -> None:
    pool.ok("%dist_park")
    with closing(lease(0)):
        stopped = pool.run(
            SUM, until=lambda result: "Resuming the pool" in result.shown, act=pool.interrupt
        )
        assert stopped.status == "error", stopped.shown
        assert leased() == [0]
    assert states(driver) == {"0": 2, "1": 2}
    assert said(pool, SUM)[-2:] == FINE


@pytest.mark.parametrize("call", ["lock", "checkpoint"])
def test_a_pool_that_cannot_be_parked_goes_on(pool: Notebook, driver: FakeCuda, call: str) -> None:
    driver.script(f"1 {call} fail 801")
    failed = pool.fails("%dist_park")
    assert "Rank 1 cannot be parked. The driver's cuCheckpointProcess" in failed
    assert "The ranks go on, and keep their variables." in failed
    assert (leased(), states(driver)["0"]) == ([0, 1], 0)
    assert said(pool, SUM) == FINE
    driver.script()
    pool.ok("%dist_park")
    assert leased() == []


def test_a_rank_that_does_not_come_back_keeps_the_pool_parked(
    pool: Notebook, driver: FakeCuda
) -> None:
    pool.ok("%dist_park")
    driver.script("1 restore fail 2")
    failed = pool.fails("%dist_resume")
    assert "Rank 1 did not come back to its GPU." in failed
    assert "CUDA_ERROR_OUT_OF_MEMORY. The pool stays parked." in failed
    assert (leased(), states(driver)) == ([], {"0": 2, "1": 2})
    driver.script()
    assert said(pool, SUM)[-2:] == FINE


def test_only_a_rank_that_the_driver_has_lost_is_ended(pool: Notebook, driver: FakeCuda) -> None:
    pool.ok("%dist_park")
    driver.script("1 restore lose 2")
    failed = pool.fails("%dist_resume")
    assert "Rank 1 had to be ended, and the variables there are lost." in failed
    driver.script()
    assert leased() == [0, 1]
    pool.ok("%%rank 0\nassert kept == 10")
    pool.ok("%dist_restart --ranks 1")
    pool.ok("%%rank 1\nkept = 11")
    assert said(pool, SUM) == FINE


def test_a_rank_that_dies_while_it_is_parked(pool: Notebook) -> None:
    pids = said(pool, "%%distributed\nimport os\nprint(os.getpid())")
    pool.ok("%dist_park")
    psutil.Process(int(pids[1].split()[-1])).kill()
    wait_for(lambda: "dead" in pool.ok("%dist_status").shown, "its death to be known")
    pool.ok("%dist_resume")
    assert leased() == [0, 1]
    pool.ok("%%rank 0\nassert kept == 10")


def test_what_a_parked_pool_refuses(pool: Notebook) -> None:
    pool.ok("%dist_park")
    for magic in ("%dist_restart", "%dist_resize 3"):
        assert "its state is SUSPENDED" in pool.fails(magic)
    assert "%dist_resume" in pool.fails("%dist_restart")
    pool.ok("%dist_shutdown")
    assert leased() == []


def test_other_pools_are_refused(kernel: Notebook, gpus: State) -> None:
    kernel.ok("%dist_init -n 1")
    assert "It was not started for that." in kernel.fails("%dist_park")
    kernel.ok("%dist_shutdown")
    kernel.ok("%dist_init -n 1 --oversubscribe --park-after 20m")
    assert "It shares its GPUs with other pools." in kernel.fails("%dist_park")
    kernel.ok("%dist_shutdown")
    kernel.ok("%dist_init -n 1 --park-after 20m")
    gpus.update(**{"0.process": [f"{os.getpid()},1024,50"]})
    name = psutil.Process().name()
    assert f"GPU 0 is also used by {name}, pid {os.getpid()}" in kernel.fails("%dist_park")
    gpus.update(**{"0.process": None})
    kernel.ok("%dist_shutdown")


def test_ranks_that_share_a_gpu(kernel: Notebook, driver: FakeCuda) -> None:
    driver.script()
    kernel.ok("%dist_init -n 2 --gpu-ids 3 --park-after 20m")
    kernel.ok("%%distributed\nkept = rank + 10")
    assert leased() == [3]
    kernel.ok("%dist_park")
    assert leased() == []
    assert said(kernel, SUM)[-2:] == FINE
    kernel.ok("%dist_shutdown")
