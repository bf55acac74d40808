"""JAX makes a job of its own of the ranks."""

from __future__ import annotations

import socket

import pytest

from ..driver import Notebook
from .program import run

PLAIN_ONLY = True
pytestmark = pytest.mark.libraries


def test_jax(notebook: Notebook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"JAX_COORDINATOR_ADDRESS=127.0.0.1:{port}"
    notebook.ok(f"%dist_init -n 2 --backend none --env {address}")
    assert run(notebook, "jax_arrays") == "sum 18.0, of ranks [0, 1]"
