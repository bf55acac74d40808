"""GPUs from the notebook, on a machine that only pretends to have them: torch here has no CUDA."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.lease import Lease

from ..driver import Notebook, environment, plain_notebook
from ..fake_nvml.build import State

SLEEP = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture(scope="module")
def leases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder for leases that is this module's own."""
    folder = tmp_path_factory.mktemp("leases")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DIST_LEASES", str(folder))
        yield folder


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> State:
    """Return what the machine is told to have."""
    return State(tmp_path_factory.mktemp("nvml") / "state")


@pytest.fixture(scope="module")
def kernel(
    leases: Path, gpus: State, fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Notebook]:
    """Return a notebook on that machine."""
    fake = gpus.environment(fake_nvml_folder)
    env = environment(tmp_path_factory.mktemp("home"), JUPYTER_DIST_LEASES=str(leases), **fake)
    notebook = plain_notebook(env, tmp_path_factory.mktemp("folder"))
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


@pytest.fixture
def notebook(kernel: Notebook, gpus: State) -> Iterator[Notebook]:
    """Return it with no pool, and four GPUs that are free."""
    gpus.write(gpus=4, name="NVIDIA H100", memory=80 * 2**30, utilization=0)
    yield kernel
    kernel.run("%dist_shutdown")  # the warm zygote stays


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
        told = {"pool": "p-1", "pid": stranger.pid, "since": time.time(), "notebook": "b.ipynb"}
        with Lease.take(["GPU-fake-3"], told | {"host": "here"}):
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
    assert rows["0"] == ["NVIDIA H100", "0 %", "0.0 / 80.0 GB", "35 °C", "this pool, rank 0"]
    assert rows["1"][1] == "–", "what the driver does not tell is not 0"
    assert rows["2"][1:4] == ["64 %", "31.0 / 80.0 GB", "84 °C"]
    assert rows["2"][4].startswith("python")
    assert f", pid {stranger.pid}, user " in rows["2"][4]
    assert rows["3"][4].startswith("b.ipynb, user ")


def test_ranks_know_their_gpu_also_without_cuda_in_torch(notebook: Notebook) -> None:
    started = notebook.ok("%dist_init -n 2 --gpu-ids 0,3").shown
    assert "without CUDA" in started
    said = notebook.ok(
        "%%distributed\nimport os\nprint(gpu_id, device, os.environ['CUDA_VISIBLE_DEVICES'])"
    )
    assert said.lines == ["[0]   0 cpu 0,3", "[1]   3 cpu 0,3"]
    assert "2 ranks, gloo" in notebook.ok("%dist_status").text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-n 4 --gpu-ids 0,1 --exclusive", "need 4 ranks, only 2 GPUs"),
        ("-n 2 --gpu-ids 0,5", "There is no GPU 5"),
        ("-n 2 --gpu-ids abc,def", "integers"),
        ("-n 2 --map 0:1", "1"),
        ("-n 2 --min-free-memory 200GB", "80"),
        ("--backend nccl -n 2 --gpu-ids 1", "NCCL"),
    ],
)
def test_what_cannot_be_is_refused_plainly(notebook: Notebook, options: str, words: str) -> None:
    begun = time.monotonic()
    said = notebook.fails(f"%dist_init {options}")
    assert words in said
    assert "Traceback" not in said
    assert time.monotonic() - begun < 10
