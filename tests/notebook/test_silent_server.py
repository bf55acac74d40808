"""A server that hangs keeps a notebook waiting once, not twice."""

from __future__ import annotations

import os
import socket

import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.server_file import DiscoveryFile
from jupyter_dist_server.jobs.variables import JOB
from jupyter_dist_server.notebook.loop_thread import LoopThread
from jupyter_dist_server.notebook.session import server_control
from jupyter_dist_server.notebook.session.pool_owner import PoolOwner
from jupyter_dist_server.notebook.session.server_control import ServerControl, find_server


def test_a_server_that_did_not_respond_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(JOB, raising=False)
    monkeypatch.setattr(patience, "factor", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        url = f"http://127.0.0.1:{hung.getsockname()[1]}/"
        file = DiscoveryFile(url, "secret", "", ProcessRef.of(os.getpid()))
        monkeypatch.setattr(server_control, "kernel_id", lambda: "a-kernel")
        monkeypatch.setattr(server_control, "read_discovery_files", lambda: iter([file]))
        owner = PoolOwner(LoopThread())
        owner.control = ServerControl(file, "a-kernel")
        assert owner.find(None) is None
        assert _connections(hung) == 1
        assert find_server() is None
        assert _connections(hung) == 1


def _connections(listener: socket.socket) -> int:
    """Accept, and count, the connections that were made since the last time."""
    listener.setblocking(False)
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1
