"""What happens to a pool when its kernel or its server ends or restarts."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..environment import tagged
from ..notebook_driver import Notebook, wait_until_ready
from ..server_driver import Server
from ..waiting import wait_for

GRACE = "--JupyterDistApp.orphan_grace=2"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server whose pools wait a little for a kernel that comes back."""
    server = Server(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("root"), GRACE)
    yield server
    server.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """Return a server that the test may end."""
    (tmp_path / "root").mkdir()
    server = Server(tmp_path / "home", tmp_path / "root", GRACE)
    yield server
    if server.process.poll() is None:
        server.close()


def started(server: Server) -> Notebook:
    notebook = server.notebook()
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    notebook.ok("%%distributed\nkept = 7")
    return notebook


def test_a_restarted_kernel_finds_its_pool_again(patient: Server) -> None:
    notebook = started(patient)
    notebook.ok("%%distributed\n1")
    wait_for(
        lambda: [rank["cell"] for rank in patient.pools()[0]["ranks"]] != [None, None],
        "the server to have read of the cells",
    )
    patient.api("POST", f"api/kernels/{notebook.kernel_id}/restart")
    # The new kernel counts its cells anew.
    wait_for(
        lambda: [rank["cell"] for rank in patient.pools()[0]["ranks"]] == [None, None],
        "the end of the old numbers",
    )
    wait_until_ready(notebook.client)
    attached = notebook.ok("%load_ext jupyter_dist_server")
    assert attached.lines == ["Attached to this notebook's pool of 2 ranks."]
    assert notebook.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    notebook.close()


def test_a_pool_whose_folder_was_removed_is_told_and_replaced(patient: Server) -> None:
    notebook = started(patient)
    folder = Path(patient.pools()[0]["folder"])
    shutil.rmtree(folder)
    removed = f"Files of the pool in {folder} were removed, so nothing can connect to it any more"
    assert removed in notebook.fails("%dist_restart --ranks 1")
    assert notebook.error_code() == "pool_unreachable"
    assert notebook.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    assert "already running" in notebook.ok("%dist_init -n 2").text
    wait_for(lambda: removed in str(patient.pools()[0]["notices"]), "the notice")
    patient.api("POST", f"api/kernels/{notebook.kernel_id}/restart")
    wait_until_ready(notebook.client)
    notebook.ok("%load_ext jupyter_dist_server")
    for cell in ("%dist_status", "%%distributed\n1"):
        assert removed in notebook.fails(cell)
    assert "2 ranks ready" in notebook.ok("%dist_init -n 2").shown
    assert patient.pools()[0]["folder"] != str(folder)
    notebook.close()


def test_a_kernel_that_is_killed_and_restarted_finds_its_pool_again(patient: Server) -> None:
    notebook = started(patient)
    pid = int(notebook.ok("import os\nprint(os.getpid())").text)
    kernel = next(process for process in tagged(patient.env) if process.pid == pid)
    kernel.kill()  # the server starts it again, with the same id
    wait_until_ready(notebook.client)
    notebook.ok("%load_ext jupyter_dist_server")
    assert notebook.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    notebook.close()


def test_the_pool_says_whether_all_cells_of_a_notebook_run_on_it(patient: Server) -> None:
    notebook = started(patient)

    def mode() -> bool:
        kernels = [who for who in patient.pools()[0]["attachments"] if who["as"] == "kernel"]
        return bool(kernels) and bool(kernels[-1]["mode"])  # an old connection may linger

    assert mode() is False
    notebook.ok("%dist_mode -e")
    wait_for(mode, "the mode")
    notebook.ok("%dist_restart")  # a new connection holds the pool from now on
    wait_for(lambda: patient.pools()[0]["state"] == "RUNNING" and mode(), "the mode")
    notebook.ok("%dist_mode -d")
    wait_for(lambda: not mode(), "its end")
    notebook.close()


def test_all_cells_go_to_the_ranks_until_their_pool_ends(patient: Server) -> None:
    notebook = started(patient)

    def end() -> None:
        pool = patient.pools()[0]["id"]
        patient.api("DELETE", f"jupyter-dist/pools/{pool}?wait=1")

    notebook.ok("%dist_mode -e")
    assert notebook.ok("print('here')").lines == ["[0-1] here"]
    end()
    patient.api("POST", "jupyter-dist/pools", {"kernel_id": notebook.kernel_id})
    wait_for(lambda: patient.pools()[0]["state"] == "RUNNING", "the next pool")
    assert notebook.ok("print('here')").lines == ["here"]  # as the toolbar says by then
    notebook.ok("%dist_mode -e")
    end()
    assert notebook.ok("%dist_mode").lines == ["Cells run in the notebook."]
    assert notebook.refused("print('here')") == "no_pool"
    assert notebook.ok("print('here')").lines == ["here"]
    notebook.close()


def test_what_the_panel_does_is_seen_by_the_magics(patient: Server) -> None:
    notebook = patient.notebook()
    pool = patient.api("POST", "jupyter-dist/pools", {"kernel_id": notebook.kernel_id})
    notebook.ok("%load_ext jupyter_dist_server")  # while the pool starts
    assert notebook.ok("%%distributed\nkept = world_size\nkept").lines == ["[0-1] 2"]
    notebook.ok("%%distributed\nkept")
    restarted = patient.api("POST", f"jupyter-dist/pools/{pool['id']}/restart")
    while restarted["state"] != "RUNNING":
        news = f"?after={restarted['version']}&wait=20"
        restarted = patient.api("GET", f"jupyter-dist/pools/{pool['id']}{news}")
    assert "NameError" in notebook.fails("%%distributed\nkept")
    patient.api("DELETE", f"jupyter-dist/pools/{pool['id']}?wait=1")
    assert notebook.refused("%%distributed\n1") == "no_pool"
    notebook.close()


def test_a_cell_whose_ranks_are_restarted_says_so(patient: Server) -> None:
    notebook = started(patient)
    pool = patient.pools()[0]["id"]
    result = notebook.run(
        "%%distributed\nimport time\nprint('in')\ntime.sleep(600)",
        until=lambda r: "in" in r.text,
        act=lambda: patient.api("POST", f"jupyter-dist/pools/{pool}/restart"),
    )
    assert result.error == "Ranks 0-1 were restarted meanwhile."
    assert notebook.ok("%%distributed\nrank").lines == ["[0]   0", "[1]   1"]
    notebook.close()


def test_a_shut_down_server_takes_its_pools_along(own_server: Server) -> None:
    started(own_server)
    own_server.close()  # checks that no process is left


def test_a_killed_server_leaves_no_rank(own_server: Server) -> None:
    notebook = started(own_server)
    own_server.process.send_signal(signal.SIGKILL)
    own_server.process.wait()
    wait_for(lambda: not tagged(own_server.env), "the end of kernels and ranks")
    notebook.client.stop_channels()


def test_several_notebooks_have_pools_of_their_own(patient: Server) -> None:
    one, two = started(patient), started(patient)
    one.ok("%%distributed\nkept = 1")
    assert two.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    assert len(patient.pools()) == 2
    one.close()
    assert two.ok("%%distributed\nkept").lines == ["[0-1] 7"]
    two.close()
