"""Two notebooks use one pool; neither is hurt by what the other one does to itself."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.protocol.pool_file import CONFIG

from ..environment import environment
from ..notebook_driver import Notebook, plain_notebook
from ..server_driver import Server
from ..waiting import wait_for
from .places import PATIENT, pool_folder, wait_until_at


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that stops the pool of a kernel as soon as that is gone."""
    grace = "--JupyterDistApp.orphan_grace=0"
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"), grace)
    yield server
    server.close()


@pytest.fixture(scope="module", params=["plain", "served"])
def start(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Notebook]:
    """Return what starts a notebook of one user, with a server or without."""
    if request.param == "served":
        server: Server = request.getfixturevalue("strict")
        return server.notebook
    folder = tmp_path_factory.mktemp("folder")
    return lambda: plain_notebook(environment(tmp_path_factory.mktemp("home")), folder)


@pytest.fixture(scope="module")
def notebooks(start: Callable[[], Notebook]) -> Iterator[list[Notebook]]:
    """Return the two notebooks of all tests; one that a test has ended is replaced."""
    kept: list[Notebook] = []
    yield kept
    for notebook in reversed(kept):
        notebook.close()


@pytest.fixture
def two(
    start: Callable[[], Notebook], notebooks: list[Notebook]
) -> Iterator[tuple[Notebook, Notebook]]:
    """Return two notebooks; the first has a pool, in which `kept` is 7."""
    while len(notebooks) < 2:
        notebooks.append(start())
        notebooks[-1].ok("%load_ext jupyter_dist_server")
    one, other = notebooks
    one.ok("%dist_init -n 2")
    one.ok("%%distributed\nkept = 7")
    yield one, other
    for notebook in [each for each in (other, one) if each in notebooks]:
        notebook.run("%dist_shutdown")  # which keeps torch imported


def test_the_only_other_pool_is_attached_to(two: tuple[Notebook, Notebook]) -> None:
    one, other = two
    assert re.match(r"Attached to pool p-\w+ of 2 ranks\.", other.ok("%dist_attach").text)
    assert other.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    other.ok("%%distributed\nkept = 8")
    assert one.ok("%%distributed\nkept").lines == ["[0-1] 8"]
    assert "idle" in other.ok("%dist_status").text
    other.ok("%dist_restart")
    assert "NameError" in one.fails("%%distributed\nkept")


def test_both_have_the_ranks_of_a_pool_that_one_resizes(two: tuple[Notebook, Notebook]) -> None:
    one, other = two
    other.ok("%dist_attach")
    other.ok("%%distributed\nother = kept")
    cell = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nint(t), world_size"
    one.ok("%dist_resize 3")
    assert other.ok(cell).lines == ["[0-2] (3, 3)"]
    other.ok("%dist_resize 2")
    assert one.ok(cell).lines == ["[0-1] (2, 2)"]
    assert one.ok("%%distributed\nother").lines == ["[0-1] 7"]


def test_the_timeline_shows_what_a_guest_profiles(
    two: tuple[Notebook, Notebook], request: pytest.FixtureRequest
) -> None:
    one, other = two
    other.ok("%dist_attach")
    other.ok("%%distributed --profile\nsum(torch.ones(500) @ torch.ones(500) for _ in range(99))")
    if one.kernel_id:  # or there is no timeline
        server: Server = request.getfixturevalue("strict")
        cells = server.api("GET", "jupyter-dist/cells")["cells"]
        assert [stretch["lanes"] is not None for stretch in cells[-1]["stretches"]] == [True, True]


def test_a_guest_leaves_and_the_owner_stops(two: tuple[Notebook, Notebook]) -> None:
    one, other = two
    other.ok("%dist_attach")
    said = other.ok("%dist_shutdown").text
    assert re.match(r"Detached from pool p-\w+; another notebook still uses it\.", said)
    assert other.refused("%%distributed\n1") == "no_pool"
    assert one.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    other.ok("%dist_attach")
    assert one.ok("%dist_shutdown").lines == ["Stopped 2 ranks."]
    assert other.refused("%%distributed\n1") == "no_pool"


def test_a_killed_guest_hurts_nobody(
    two: tuple[Notebook, Notebook], notebooks: list[Notebook]
) -> None:
    one, other = two
    other.ok("%dist_attach")
    pid = int(other.ok("import os\nprint(os.getpid())").text)
    one.run(
        "%%distributed\nimport time\nprint('in', flush=True)\ntime.sleep(1)\nkept = 9",
        until=lambda result: "in" in result.text,
        act=psutil.Process(pid).kill,
    )
    assert one.ok("%%distributed\nkept").lines == ["[0-1] 9"]
    notebooks.remove(other)
    other.close()


def test_a_cell_that_another_notebook_stops_says_so_in_one_sentence(
    two: tuple[Notebook, Notebook],
) -> None:
    one, other = two
    other.ok("%dist_attach")
    folder = pool_folder(one)
    one.ok(PATIENT)
    other.ok(PATIENT)

    def stop() -> None:
        wait_until_at(folder, {0: "barrier", 1: 6})
        other.ok("%dist_interrupt")

    result = one.run(
        "%%distributed\nprint('in')\nif rank == 0:\n    dist.barrier()\n"
        "import time\ntime.sleep(600)",
        until=lambda result: "in" in result.text,
        act=stop,
    )
    assert result.error == (
        "Interrupted: rank 0 was waiting in barrier (line 4), rank 1 in Python code (line 6); "
        "all variables are kept, but create DDP models and groups from `new_group` again."
    )
    assert "KeyboardInterrupt" in result.shown.partition("Details:\n")[2]
    assert one.ok("%%distributed\ndist.barrier()\nkept").lines == ["[0-1] 7"]


def hold_the_lock(one: Notebook, other: Notebook, folder: Path) -> tuple[Path, str]:
    """Run a cell in the other notebook; return the file that ends it, and the cell."""
    go = folder / "go"
    waiting = f"while not os.path.exists({str(go)!r}): time.sleep(0.01)"
    cell = other.send(f"%%rank 0\nimport os, time\n{waiting}\nkept")
    wait_for(lambda: "busy" in one.ok("%dist_status").text, "the cell's begin")
    return go, cell


def test_a_restart_does_not_wait_for_the_cell_of_another_notebook(
    two: tuple[Notebook, Notebook], tmp_path: Path
) -> None:
    one, other = two
    other.ok("%dist_attach")
    go, cell = hold_the_lock(one, other, tmp_path)
    restarted = one.ok("%dist_restart --ranks 1")
    assert "will be re-created when all ranks are running and idle" in restarted.text
    go.touch()
    assert other.follow(cell).lines == ["[0]   7"]
    one.ok("%sync")


def test_a_cell_that_waits_for_the_execution_lock_says_so(
    two: tuple[Notebook, Notebook], tmp_path: Path
) -> None:
    one, other = two
    other.ok("%dist_attach")
    go, cell = hold_the_lock(one, other, tmp_path)
    limit = "from jupyter_dist_server.notebook.cells import cell_wait\ncell_wait.LIMIT ="
    one.ok(f"{limit} 1")
    result = one.ok(
        "%%rank 1\nkept",
        until=lambda shown: "another notebook may be using the pool" in shown.shown,
        act=go.touch,
    )
    assert result.lines == ["[1]   7"]
    assert other.follow(cell).lines == ["[0]   7"]
    one.ok(f"{limit} 10")


def test_the_pool_goes_on_with_a_guest_when_its_owner_is_gone(
    two: tuple[Notebook, Notebook], notebooks: list[Notebook]
) -> None:
    one, other = two
    other.ok("%dist_attach")
    notebooks.remove(one)
    if one.kernel_id:
        one.client.shutdown()  # deliberately, and by the server
        one.close()
    else:
        psutil.Process(int(one.ok("import os\nprint(os.getpid())").text)).kill()
    assert other.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    assert other.ok("%dist_shutdown").lines == ["Stopped 2 ranks."]
    if not one.kernel_id:
        one.close()


def test_several_pools_are_listed_and_one_is_chosen(two: tuple[Notebook, Notebook]) -> None:
    one, other = two
    own = plain_notebook(environment(Path(one.env["IPYTHONDIR"]) / "third"), Path.cwd())
    try:
        own.ok("%load_ext jupyter_dist_server")
        own.ok("%dist_init -n 1")
        lines = other.ok("%dist_attach").lines
        assert lines[0] == "Choose a pool with %dist_attach POOL:"
        assert [line.split()[1] for line in lines[2:]] == ["2", "1"]
        second = lines[3].split()[0]
        assert other.ok(f"%dist_attach {second}").lines == [f"Attached to pool {second} of 1 rank."]
        assert other.ok("%%distributed\nworld_size").lines == ["[0] 1"]
        assert other.refused(f"%dist_attach {second}") == "pool_exists"
        other.ok("%dist_shutdown")
        assert other.refused("%dist_attach p-nowhere") == "pool_not_found"
    finally:
        own.close()


def test_there_may_be_nothing_to_attach_to(two: tuple[Notebook, Notebook]) -> None:
    one, other = two
    one.ok("%dist_shutdown")
    said = other.ok("%dist_attach").lines
    assert said == ["You have no other pool on this machine."]
    folder = Path(tempfile.mkdtemp(prefix="jdist-"))  # that of a pool of an older version
    try:
        (folder / CONFIG).write_text('{"id": "p-old"}')
        assert other.ok("%dist_attach").lines == [
            *said,
            f"Started by another version of jupyter-dist-server: {folder}",
        ]
    finally:
        shutil.rmtree(folder)
