"""SIGINT, by which JupyterHub stops servers."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from ..environment import tagged
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for
from .client import Client


@pytest.mark.usefixtures("interruptible")
def test_sigint_without_a_terminal_ends_pools_too(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    server = Server(tmp_path / "home", tmp_path / "root")
    Client(server).start(num_ranks=1)
    server.process.send_signal(signal.SIGINT)
    server.process.wait(PATIENCE)
    wait_for(lambda: not tagged(server.env), "the end of the server's processes")
