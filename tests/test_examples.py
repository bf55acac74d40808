"""The example notebooks do what they say: with a server, without one, and under torchrun."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE
from tools.demo import EXAMPLES, INSTALLS, check, play

from .conftest import pool_folders
from .environment import environment, tagged
from .fake_nvml.build import State
from .result import Result
from .server_driver import Server
from .waiting import PATIENCE, wait_for

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
FIGURES = {"ddp_digits": 1, "kaggle_two_gpus": 0, "quickstart": 0, "sliding_window": 1}

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the examples' folder, as notebooks write files there."""
    return shutil.copytree(EXAMPLES, tmp_path_factory.mktemp("root") / "examples")


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server of that folder."""
    server = Server(tmp_path_factory.mktemp("home"), folder)
    yield server
    server.close()


def test_no_example_is_left_out() -> None:
    assert {path.stem for path in NOTEBOOKS} == set(FIGURES)


@each_notebook
def test_with_a_server(path: Path, server: Server) -> None:
    figures: list[str] = []

    def on_cell(source: str, result: Result) -> None:
        figures.extend(result.mime("image/png"))

    notebook = server.notebook()
    try:
        pools = play(path, server, notebook, on_cell)
    finally:
        notebook.close()
    assert len(figures) == FIGURES[path.stem]
    check(pools, ranks=2)
    left = [process for process in tagged(server.env) if process.name() != ZYGOTE]
    assert left == [psutil.Process(server.process.pid)]


def test_quickstart_on_pretended_gpus(fake_nvml_folder: Path, tmp_path: Path) -> None:
    """As under `make lab-fake`: a rank has a GPU there, and uses the CPU, as there is no driver."""
    state = State(tmp_path / "state")
    state.write(gpus=2, memory=80 << 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DIST_LEASES", str(tmp_path / "leases"))
        for name, value in state.environment(fake_nvml_folder).items():
            patch.setenv(name, value)
        server = Server(tmp_path / "home", EXAMPLES)
    notebook = server.notebook()
    texts: list[str] = []
    try:
        play(
            EXAMPLES / "quickstart.ipynb",
            server,
            notebook,
            lambda source, result: texts.append(result.text),
        )
    finally:
        notebook.close()
        server.close()
    assert "GPU 1" in "".join(texts)


@pytest.mark.parametrize("name", sorted({*FIGURES} - {"ddp_digits"}))  # which takes longest
def test_without_a_server(name: str, folder: Path, tmp_path: Path) -> None:
    folders, env = pool_folders(), environment(tmp_path)
    most_processes = 0

    def on_cell(**_: Any) -> None:
        nonlocal most_processes
        most_processes = max(most_processes, len(tagged(env)))

    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)
    client = NotebookClient(
        notebook,
        timeout=int(PATIENCE),
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        skip_cells_with_tag=INSTALLS,
        on_cell_executed=on_cell,
    )
    client.execute(env=env)  # raises at the first cell that fails
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == FIGURES[name]
    assert most_processes == 5, "the kernel, the agent, two ranks, and a warm zygote"
    wait_for(lambda: not tagged(env), "the end of the zygote, which ends with its owner")
    assert pool_folders() <= folders


def test_the_script_runs_under_torchrun() -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, str(EXAMPLES / "sliding_window.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "rank 0: 24 of 48 windows" in done.stdout
    assert "rank 1: 24 of 48 windows" in done.stdout
    assert "SUCCESS: 48 results" in done.stdout
