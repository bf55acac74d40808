"""GPUs from the notebook, on a machine that only pretends to have them: torch here has no CUDA."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease

from ..environment import environment, tagged
from ..fake_nvml.build import State
from ..notebook_driver import Notebook, plain_notebook
from ..result import Result
from ..server_driver import Server
from ..waiting import wait_for

MACHINE = {"gpus": 4, "name": "NVIDIA H100", "memory": 80 * 2**30, "utilization": 0}
SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture(scope="module")
def leases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for leases that is this module's own."""
    folder = tmp_path_factory.mktemp("leases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER, str(folder))
        yield folder


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> State:
    """Return what the machine is told to have."""
    return State(tmp_path_factory.mktemp("nvml") / "state")


@pytest.fixture(scope="module")
def variables(leases: Path, gpus: State, fake_nvml_folder: Path) -> dict[str, str]:
    """Return what makes a process see that machine, and lease its GPUs."""
    gpus.write(**MACHINE)
    return gpus.environment(fake_nvml_folder) | {FOLDER: str(leases)}


@pytest.fixture(scope="module")
def kernel(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Return a notebook without a server on that machine."""
    env = environment(tmp_path_factory.mktemp("home"), **variables)
    notebook = plain_notebook(env, tmp_path_factory.mktemp("folder"))
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


@pytest.fixture
def notebook(kernel: Notebook, gpus: State) -> Iterator[Notebook]:
    """Return it with no pool, and four GPUs that are free."""
    gpus.write(**MACHINE)
    yield kernel
    kernel.run("%dist_shutdown")  # the warm zygote stays


@pytest.fixture(scope="module")
def gpu_server(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"), **variables)
    yield server
    server.close()


@pytest.fixture(scope="module")
def served_kernel(gpu_server: Server) -> Iterator[Notebook]:
    notebook = gpu_server.notebook()
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


@pytest.fixture
def served(served_kernel: Notebook) -> Iterator[Notebook]:
    """Return a notebook of a server on the same machine, with no pool."""
    yield served_kernel
    served_kernel.run("%dist_shutdown")


def table(text: str) -> dict[str, list[str]]:
    """Return the cells of the rows below the head that begins with GPU."""
    _, _, below = text.partition("\nGPU ")
    rows = [re.split(r"  +", line) for line in below.splitlines()[1:] if line]
    return {row[0]: row[1:] for row in rows}


def test_status_shows_ranks_and_who_has_the_other_gpus(notebook: Notebook, gpus: State) -> None:
    stranger = subprocess.Popen(SLEEP)
    try:
        gpus.update(
            **{"2.process": f"{stranger.pid},{31 * 2**30},64", "2.memory_used": 31 * 2**30},
            **{"2.utilization": 64, "2.temperature": 84, "1.utilization": "!unsupported"},
        )
        who = Leaseholder(
            pool="p-1", pid=stranger.pid, since=time.time(), notebook="b.ipynb", host="here"
        )
        with closing(Lease.take(["GPU-fake-3"], who)):
            started = notebook.ok("%dist_init").shown
            said = notebook.ok("%dist_status").text
    finally:
        stranger.kill()
        stranger.wait()
    assert "2 ranks ready on GPUs 0, 1" in started
    assert "GPU 2 is used by python" in started
    assert "GPU 3 " in started and "b.ipynb" in started
    first, second = [line for line in said.splitlines() if re.match(r"[01] +c", line)][:2]
    assert "0 NVIDIA H100" in first and "idle" in first
    assert "1 NVIDIA H100" in second
    rows = table(said)
    assert rows["0"] == ["NVIDIA H100", "0 %", "0 B / 80 GiB", "35 °C", "this pool, rank 0"]
    assert rows["1"][1] == "–", "what the driver does not tell is not 0"
    assert rows["2"][1:4] == ["64 %", "31 GiB / 80 GiB", "84 °C"]
    assert rows["2"][4].startswith("used by python")
    assert f", pid {stranger.pid}, user " in rows["2"][4]
    assert rows["3"][4].startswith("b.ipynb, user ")


def test_ranks_know_their_gpu_also_without_cuda(notebook: Notebook) -> None:
    started = notebook.ok("%dist_init -n 2 --gpu-ids 0,3").shown
    assert "ranks have GPU IDs, but run on the CPU" in started
    said = notebook.ok(
        "%%distributed\nimport os\nprint(gpu_id, device, os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    assert said.lines == ["[0]   0 cpu 0,3", "[1]   3 cpu 0,3"]
    assert "2 ranks, gloo" in notebook.ok("%dist_status").text

    for line in ("--ranks 2 -g 0,3 --one-rank-per-gpu", "-g GPU-fake-3,GPU-fake-0 --placement ids"):
        assert "is already running" in notebook.ok(f"%dist_init {line}").text
    for line in ("-g 0", "-g 0,1", "-g 0,1,3", "-g 0,3 --placement cycle"):
        assert notebook.refused(f"%dist_init {line}") == "pool_exists"


def test_free_gpus_are_taken_by_default_and_it_is_said_which_and_why(
    notebook: Notebook, served: Notebook
) -> None:
    first = notebook.ok("%dist_init -n 2 --map 0:3,1:0").shown
    assert "2 ranks ready on GPUs 3, 0 (gloo)" in first
    code = "import os\nprint(gpu_id, device, os.environ['CUDA_VISIBLE_DEVICES'])"
    assert notebook.ok(f"%%distributed\n{code}").lines == ["[0]   3 cpu 3,0", "[1]   0 cpu 3,0"]
    assert "is already running" in notebook.ok("%dist_init --map 0:3,1:0").text
    for other in ("0:0,1:3", "0:3", "0:3,1:0,2:1"):
        assert notebook.refused(f"%dist_init --map {other}") == "pool_exists"
    second = served.ok("%dist_init").shown
    assert "2 ranks ready on GPUs 1, 2 (gloo)" in second
    assert "Not used: GPUs 0, 3 are leased by" in second
    notebook.ok("%dist_shutdown")
    refused = notebook.fails("%dist_init -n 2 --gpu-ids 1,2")
    assert refused.startswith("GPUs 1, 2 are leased by ") and "pool p-" in refused
    assert "ranks share GPUs" in notebook.ok("%dist_init -n 3 --gpu-ids 0,3").shown


def test_scaling_says_which_ranks_share_gpus(notebook: Notebook, gpus: State) -> None:
    gpus.write(**{**MACHINE, "gpus": 1})
    result = notebook.ok("def work(): pass\n%dist_scaling --ranks 1,2 work")
    shared = [line for line in result.lines if "ranks share GPUs" in line]
    assert len(shared) == 1 and shared[0].startswith("2 ranks: More ranks than GPUs: "), (
        result.shown
    )


def test_waiting_in_line_is_reported_and_ends_when_the_gpu_is_free(
    notebook: Notebook, served: Notebook
) -> None:
    notebook.ok("%dist_init -n 4")

    def is_waiting(result: Result) -> bool:
        return "No GPU is free: GPUs 0, 1, 2, 3 are leased by" in result.shown

    sent = served.send("%dist_init -n 1 --wait 60")
    result = served.follow(sent, until=is_waiting, act=lambda: notebook.ok("%dist_shutdown"))
    assert result.status == "ok" and "1 rank ready on GPU 0" in result.shown
    assert any("Waiting for GPUs" in str(message["content"]) for message in result.messages)


def test_waiting_can_be_interrupted_shut_down_and_limited(
    notebook: Notebook, served: Notebook, gpu_server: Server, leases: Path
) -> None:
    notebook.ok("%dist_init -n 4")

    def is_waiting(result: Result) -> bool:
        return "No GPU is free" in result.shown

    sent = served.send("%dist_init --wait")
    served.follow(sent, until=is_waiting, act=served.interrupt)
    assert served.error_code() == "start_cancelled"
    assert served.refused("%dist_init --wait 0.5") == "gpus_taken"

    body = {"kernel_id": served.kernel_id, "wait": True}
    pool = gpu_server.api("POST", "jupyter-dist/pools", body)
    assert (pool["state"], pool["ranks"]) == ("PENDING", [])
    served.ok("%dist_shutdown")
    ended = gpu_server.api("GET", f"jupyter-dist/pools/{pool['id']}")
    assert ended["state"] == "CANCELLED"
    assert not list(leases.glob("*.board"))


def test_a_function_of_the_users_places_ranks(notebook: Notebook, served: Notebook) -> None:
    served.ok("%dist_init -n 1")  # GPU 0
    code = """
import jupyter_dist_server as jds
seen = []
def emptiest_last(rank, gpus):
    seen.append([(gpu.index, gpu.memory_free > 0) for gpu in gpus])
    return gpus[-1 - rank]
pool = jds.start_pool(num_ranks=2, place=emptiest_last)
print(seen[0], [rank.gpu.index for rank in pool._record.ranks])
"""
    assert "[(1, True), (2, True), (3, True)] [3, 2]" in notebook.ok(code).text
    notebook.ok("%dist_shutdown")
    said = notebook.fails("jds.start_pool(4, place=lambda rank, gpus: gpus[rank])")
    assert "failed for rank 3 (list index out of range): GPU 0 is leased by" in said
    assert "returned None for rank 0" in notebook.fails(
        "jds.start_pool(place=lambda rank, gpus: None)"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-n 2 --gpu-ids 0,5", "There is no GPU 5."),
        ("-n 4 --gpu-ids 0,1 --one-rank-per-gpu", "need 4 ranks, only 2 GPUs"),
        ("--map 0:3,0:1", "--map has a rank twice"),
        ("--map 0:3,2:1", "The map has a GPU for rank 2, but none for rank 1."),
        ("--map zero:3", "The map puts rank 0 on node “zero”. A pool on several nodes needs"),
        ("--map 0:3,one:1", "--map must be ranks with GPUs, such as 0:3,1:0,2:cpu, not “one:1”."),
        ("--map 0:3 -n 2", "The map has 1 rank, but the pool has 2."),
        ("--performance 0=fast", "--performance must be GPUs with scores, such as 0=100,3=110"),
        (
            "--min-free-memory 20",
            "--min-free-memory must be a size such as 20GiB or 500MiB, not “20”.",
        ),
        ("--min-free-memory 900GB", "No GPU has 900 GiB: the largest, GPU 0, has 80 GiB."),
        (
            "-n 2 --gpu-ids 1 --backend nccl",
            "NCCL refuses two ranks on one GPU: 2 ranks, only 1 GPU.",
        ),
        ("--placement best", "“best” is not a placement."),
        ("--placement map", "Placement by map needs a map, such as 0:3,1:0."),
        ("--share --exclusive", "A pool cannot both refuse to share GPUs and share them."),
        ("--wait soon", "--wait must be a number of seconds, not “soon”."),
        ("--wait -1", "“wait” must be a number of seconds up to 1e+09, or true for no limit"),
    ],
)
def test_what_cannot_be_is_refused_plainly(notebook: Notebook, options: str, message: str) -> None:
    error = notebook.fails(f"%dist_init {options}")
    assert message in error and len(error.splitlines()) <= 2


def test_killed_servers_and_kernels_leave_no_gpu_behind(
    notebook: Notebook, variables: dict[str, str], tmp_path: Path
) -> None:
    """The last test: it kills for good."""
    (tmp_path / "root").mkdir()
    server = Server(
        tmp_path / "home", tmp_path / "root", "--JupyterDistApp.orphan_grace=0", **variables
    )
    doomed = server.notebook()
    doomed.ok("%load_ext jupyter_dist_server\n%dist_init -n 4")
    assert "No GPU is free" in notebook.fails("%dist_init -n 1")
    for process in (server.process.pid, int(doomed.ok("import os; print(os.getpid())").text)):
        os.kill(process, signal.SIGKILL)
    started = notebook.ok("%dist_init -n 4 --wait 120")
    assert "4 ranks ready on GPUs 0, 1, 2, 3" in started.shown
    server.process.wait()
    wait_for(lambda: not tagged(server.env), "the end of the server's processes")


def test_two_servers_never_give_the_same_gpu(
    served: Notebook, gpus: State, variables: dict[str, str], tmp_path: Path
) -> None:
    gpus.write(**MACHINE)
    other = Server(tmp_path / "home", tmp_path, **variables)
    try:
        notebook = other.notebook()
        notebook.ok("%load_ext jupyter_dist_server")
        assert "2 ranks ready on GPUs 0, 3" in served.ok("%dist_init -n 2 --gpu-ids 0,3").shown
        assert "GPU 3 is leased by" in notebook.fails("%dist_init -n 1 --gpu-ids 3")
        assert "2 ranks ready on GPUs 1, 2" in notebook.ok("%dist_init").shown
        held = {rank["gpu"]["index"] for pool in other.pools() for rank in pool["ranks"]}
        assert held == {1, 2}
        notebook.close()
    finally:
        other.close()
