"""``!jdist`` is found in an environment that is not activated."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from ..environment import environment
from ..notebook_driver import plain_notebook
from ..server_driver import Server

SYSTEM = "/usr/bin:/bin"


def test_a_kernel_finds_jdist_last_on_its_path(tmp_path: Path) -> None:
    notebook = plain_notebook(environment(tmp_path / "home", PATH=SYSTEM), tmp_path)
    try:
        assert "not found" in notebook.run("!jdist --version").text
        notebook.ok("%load_ext jupyter_dist_server")
        assert "not found" not in notebook.ok("!jdist --version").text
        found = notebook.ok("import os; print(os.environ['PATH'])").text.strip()
        assert found == f"{SYSTEM}:{sysconfig.get_path('scripts')}"
        notebook.ok("%dist_init -n 1")
        assert "not found" not in notebook.ok("%%distributed\n!jdist --version").text
    finally:
        notebook.close()


@pytest.fixture
def bare_server(tmp_path: Path) -> Server:
    (tmp_path / "root").mkdir()
    return Server(tmp_path / "home", tmp_path / "root", PATH=SYSTEM)


def test_what_a_server_starts_finds_it_too(bare_server: Server) -> None:
    notebook = bare_server.notebook()
    try:
        assert "not found" not in notebook.ok("!jdist --version").text
    finally:
        notebook.close()
        bare_server.close()
