"""Fixtures: one server for all tests of the API, and one on a machine with eight pretend GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from ..conftest import pool_folders
from ..fake_nvml.build import State
from ..server_driver import Server
from ..waiting import wait_for
from .client import Client
from .stalls import check, configuration

TICK = 0.25
"""Seconds between two samples of `gpu_server`."""
EIGHT_GPUS = {
    "gpus": 8,
    "name": "NVIDIA H100 80GB HBM3",
    "memory": 80 << 30,
    "memory_used": 8 << 30,
    "utilization": 50,
    "power": 300_000,
    "temperature": 40,
}
WATCHED_FOR = 1.0
CONFIG = f"""
import os
from jupyter_dist_server.gpus import telemetry
from jupyter_dist_server.server.gpus import gpu_messages
telemetry.KEEP_ALIVE = {WATCHED_FOR}
gpu_messages.LEASES_EVERY = 0.2
os.environ["JUPYTER_DIST_LEASES"] = {{leases!r}}
c.JupyterDistApp.sample_interval = {TICK}
c.JupyterDistApp.sampler_linger = 0.1
c.JupyterDistApp.unseen_memory = 10240  # these GPUs use 8 GiB for nobody
"""


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a running server, the same for all modules of this folder."""
    before = pool_folders()
    home = tmp_path_factory.mktemp("home")
    (home / "config.py").write_text(configuration(home / "stalls"))
    server = Server(home, tmp_path_factory.mktemp("root"), f"--config={home / 'config.py'}")
    (home / "stalls").write_text("")
    yield server
    server.close()
    check(home / "stalls")
    assert pool_folders() <= before


@pytest.fixture(scope="package")
def client(server: Server) -> Client:
    """Return a caller who knows the server's token."""
    return Client(server)


@pytest.fixture(scope="package")
def _machine(
    fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, State]]:
    folder = tmp_path_factory.mktemp("gpus")
    config = CONFIG.format(leases=str(folder / "leases")) + configuration(folder / "stalls")
    (folder / "config.py").write_text(config)
    state = State(folder / "state")
    state.write(**EIGHT_GPUS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in state.environment(fake_nvml_folder).items():
            patch.setenv(name, value)
        server = Server(folder / "home", folder, f"--config={folder / 'config.py'}")
    (folder / "stalls").write_text("")
    yield server, state
    # A sampler that is at work when the server is stopped must go with it, as `close` checks.
    # Not `get`: to validate the history takes longer than a sampler waits for the next question.
    history = partial(Client(server).raw, "GET", "jupyter-dist/gpus/history")
    wait_for(lambda: history().status == 200 and samplers(server), "a sampler")
    server.close()
    check(folder / "stalls")


@pytest.fixture(scope="package")
def gpu_server(_machine: tuple[Server, State]) -> Server:
    """Return a running server that sees eight GPUs."""
    return _machine[0]


@pytest.fixture
def gpus(_machine: tuple[Server, State]) -> State:
    """Return what the eight GPUs do; a test may change that. Nobody looks at them yet."""
    server, state = _machine
    wait_until_nobody_looks(server)
    state.write(**EIGHT_GPUS)
    return state


@pytest.fixture
def leases(gpu_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process lease GPUs where that server looks for leases."""
    monkeypatch.setenv("JUPYTER_DIST_LEASES", str(gpu_server.root / "leases"))


@pytest.fixture
def gpu_client(gpu_server: Server, gpus: State) -> Client:
    """Return a caller of the server with GPUs."""
    return Client(gpu_server)


def samplers(server: Server) -> list[psutil.Process]:
    """Return the processes that read NVML for a server, over and over.

    Looks at its children alone: all processes take so long that a sampler comes and goes meanwhile.
    """
    found = []
    for process in psutil.Process(server.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # it ends just now
            if "jupyter_dist_server.gpus.sampler" in str(process.cmdline()):
                found.append(process)
    return found


def wait_until_nobody_looks(server: Server) -> None:
    """Return when a server's sampler has ended."""
    wait_for(lambda: not samplers(server), "the sampler's end")
