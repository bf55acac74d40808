"""Fixtures: one server for all tests of the API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..conftest import pool_folders
from ..driver import Server
from .client import Client


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a running server, the same for all modules of this folder."""
    before = pool_folders()
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"))
    yield server
    server.close()
    assert pool_folders() <= before


@pytest.fixture(scope="package")
def client(server: Server) -> Client:
    """Return a caller who knows the server's token."""
    return Client(server)
