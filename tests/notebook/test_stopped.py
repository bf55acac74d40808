"""A stopped process (SIGSTOP) is named, and what a person does about it works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ..environment import lives
from ..notebook_driver import Notebook
from ..result import Result
from ..server_driver import Server
from ..waiting import wait_for


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Notebook, Notebook]]:
    """Return a server and two notebooks."""
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"))
    notebooks = server.notebook(), server.notebook()
    for notebook in notebooks:
        notebook.ok("%load_ext jupyter_dist_server")
    yield server, *notebooks
    for notebook in notebooks:
        notebook.close()
    server.close()


@pytest.fixture
def pool(world: tuple[Server, Notebook, Notebook]) -> Iterator[tuple[Server, Notebook, Notebook]]:
    """Return them, the first notebook with a pool of two ranks."""
    server, one, other = world
    one.ok("%dist_init -n 2")
    yield server, one, other
    for notebook in (other, one):
        notebook.run("%dist_shutdown")  # which keeps torch imported


def ranks(server: Server) -> list[psutil.Process]:
    """Return the ranks of the only pool."""
    (found,) = server.pools()
    return [psutil.Process(rank["pid"]) for rank in found["ranks"]]


def agent(server: Server) -> psutil.Process:
    """Return the agent of the only pool."""
    parent = ranks(server)[0].parent()
    assert parent
    return parent


def test_a_stopped_rank_is_named_and_replaced_by_a_notebook_that_attaches(
    pool: tuple[Server, Notebook, Notebook],
) -> None:
    server, _, other = pool
    victim = ranks(server)[1]
    victim.suspend()
    assert "Attached" in other.ok("%dist_attach").text
    assert other.ok("%%rank 0\nrank").lines == ["[0]   0"]
    assert re.search(r"1 .* does not respond\n", other.ok("%dist_status").text)
    error = other.fails("%%distributed\nrank")
    assert "Rank 1 does not respond: it is stopped (SIGSTOP, a debugger)." in error
    assert "Replace it with %dist_restart --ranks 1, or run the cell on the others" in error
    assert other.refused("%dist_pull rank --ranks all") == "rank_silent"
    other.ok("%dist_restart --ranks 1")
    assert not victim.is_running()
    assert other.ok("%%distributed\ndist.barrier()\n'met'").lines == ["[0-1] 'met'"]


@pytest.mark.parametrize("who", ["notebook", "panel", "%dist_interrupt"])
@pytest.mark.parametrize("where", ["distributed", "rank 1"])
def test_a_rank_that_is_stopped_in_a_cell_is_named_at_stop(
    pool: tuple[Server, Notebook, Notebook], who: str, where: str
) -> None:
    server, one, other = pool
    victim = ranks(server)[1]

    def stop() -> None:
        victim.suspend()
        if who == "notebook":
            one.interrupt()
        elif who == "panel":
            server.api("POST", f"jupyter-dist/pools/{server.pools()[0]['id']}/interrupt", {})
        else:
            assert "Rank 1 did not stop" in other.ok(f"%dist_attach\n{who}").shown

    def has_begun(result: Result) -> bool:
        return "begun" in result.text

    result = one.run(
        f"%%{where}\nimport time\nprint('begun', flush=True)\nfor _ in range(10**6):\n"
        "    time.sleep(0.01)",
        until=has_begun,
        act=stop,
    )
    assert result.error.startswith("Interrupted.")
    assert re.search(r"ank 1 (was )?stopped \(SIGSTOP\)", result.error)
    assert "Rank 1 did not stop: its process is stopped." in result.error
    assert "%dist_restart --ranks 1." in result.error
    victim.resume()  # late: it interrupts itself, and is whole again
    wait_for(lambda: "idle" in one.ok("%%rank 1\n'idle'").text, "the rank's return")
    assert one.ok("%%distributed\ndist.barrier()\n'met'").lines == ["[0-1] 'met'"]


def test_a_stopped_notebook_that_keeps_another_one_from_the_pool_is_named(
    pool: tuple[Server, Notebook, Notebook],
) -> None:
    _, one, other = pool
    other.ok("%dist_attach")
    victim = psutil.Process(int(one.ok("import os\nprint(os.getpid())").text))
    one.ok("%%distributed\nrank")  # it keeps the execution lock until somebody wants it
    victim.suspend()
    said = f"process {victim.pid} has the execution lock, and is stopped (SIGSTOP, a debugger)"
    try:
        result = other.ok(
            "%%distributed\nrank", until=lambda seen: said in seen.shown, act=victim.resume
        )
    finally:
        victim.resume()
    assert result.said_by("0") == {0} and result.said_by("1") == {1}
    assert one.ok("%%distributed\nrank").lines == ["[0]   0", "[1]   1"]


def test_a_stopped_agent_is_named_and_its_pool_replaced(
    pool: tuple[Server, Notebook, Notebook],
) -> None:
    server, one, other = pool
    one.ok("%%distributed\n1")  # it has the execution lock now, and needs the agent for nothing
    victim = agent(server)
    victim.suspend()
    assert one.refused("%dist_restart --ranks 1") == "agent_silent"
    assert one.ok("%%distributed\nrank").text
    assert one.refused("%dist_init -n 2") == "agent_silent"
    assert "does not respond" in other.ok("%dist_attach").shown
    assert one.ok("%dist_shutdown").lines == ["Stopped 2 ranks."]
    wait_for(lambda: not lives(victim), "the end of the agent")
    one.ok("%dist_init -n 2")


def test_a_new_pool_starts_at_once_after_all_ranks_or_the_agent_died(
    pool: tuple[Server, Notebook, Notebook],
) -> None:
    server, one, _ = pool
    victims = ranks(server)
    for rank in victims:
        rank.kill()
    wait_for(lambda: not any(map(lives, victims)), "the end of all ranks")
    assert "2 ranks ready" in one.ok("%dist_init -n 2").shown
    victim = agent(server)
    victim.kill()
    wait_for(lambda: not lives(victim), "the end of the agent")
    assert "2 ranks ready" in one.ok("%dist_init -n 2").shown
    assert one.ok("%%distributed\ndist.barrier()\n'met'").lines == ["[0-1] 'met'"]


def test_a_stopped_server_keeps_no_notebook_from_its_pool(
    pool: tuple[Server, Notebook, Notebook],
) -> None:
    server, one, _ = pool
    (victim,) = ranks(server)[1:]
    process = psutil.Process(server.process.pid)
    process.suspend()
    try:
        assert one.ok("%%distributed\nkept = rank\nkept").text
        one.ok("%dist_restart --ranks 1")
        assert not victim.is_running()
        assert one.ok("%%distributed\ndist.barrier()\n'met'").lines == ["[0-1] 'met'"]
    finally:
        process.resume()
    wait_for(lambda: server.pools()[0]["state"] == "RUNNING", "the server's news")
    assert one.ok("%%rank 0\nkept").lines == ["[0]   0"]


def test_a_server_with_stopped_processes_ends(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    server = Server(tmp_path / "home", tmp_path / "root")
    notebook = server.notebook()
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    for process in (*ranks(server), agent(server)):
        process.suspend()
    notebook.client.stop_channels()
    server.close()
