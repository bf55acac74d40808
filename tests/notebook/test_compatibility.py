"""Names from other tools, and every way in which notebooks are run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import nbformat
import pytest
from jupyter_client import KernelManager

import jupyter_dist_server

from ..conftest import pool_folders
from ..environment import environment
from ..notebook_driver import Notebook
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for

CELLS = [
    "%load_ext jupyter_dist_server",
    "%dist_init -n 2",
    "%%distributed\nt = torch.ones(1) * rank\ndist.all_reduce(t)\nprint(t.item(), rank)",
    "%dist_shutdown",
]
SAID = "[0]   1.0 0\n[1]   1.0 1\n"


def text_of(path: Path) -> str:
    """Return what the cells of a notebook have printed."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    return "".join(o.get("text") or o.get("data", {}).get("text/plain", "") + "\n" for o in outputs)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """Return a notebook that was not run yet."""
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, tmp_path / "written.ipynb")
    return tmp_path / "written.ipynb"


def execute(command: list[str], folder: Path, stdin: str = "") -> str:
    """Run a command to its end; nothing of it may be left."""
    before, env = pool_folders(), environment(folder / "home")
    command = [sys.executable, "-m", *command]
    done = subprocess.run(
        command, cwd=folder, env=env, input=stdin, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert pool_folders() <= before
    return done.stdout


def test_nbconvert_executes_and_exports_what_the_ranks_said(written: Path) -> None:
    execute(
        ["nbconvert", "--to", "notebook", "--execute", "--inplace", written.name], written.parent
    )
    assert SAID in text_of(written)
    execute(["nbconvert", "--to", "html", written.name], written.parent)
    assert "[0]   1.0 0" in written.with_suffix(".html").read_text()


def test_papermill_stops_at_a_cell_that_fails_on_a_rank(written: Path) -> None:
    notebook = nbformat.read(written, as_version=4)
    notebook.cells.insert(3, nbformat.v4.new_code_cell("%%rank 1\nraise ValueError('no')"))
    nbformat.write(notebook, written)
    with pytest.raises(AssertionError, match="Rank 1 failed with ValueError: no"):
        execute(["papermill", written.name, "done.ipynb"], written.parent)
    done = text_of(written.with_name("done.ipynb"))
    assert SAID in done and "Stopped 2 ranks." not in done


def test_an_ipython_terminal(tmp_path: Path) -> None:
    cells = [*CELLS[:2], *CELLS[2:3], "%dist_mode -e", "'everywhere'", "%dist_mode -d", CELLS[3]]
    # Two blank lines end a cell, whatever is in it.
    lines = "".join(f"{cell}\n\n\n" for cell in cells)
    options = ["--simple-prompt", "--no-banner", "--colors=NoColor", "--no-confirm-exit"]
    shown = execute(["IPython", *options], tmp_path, lines)
    assert all(line in shown for line in SAID.splitlines())  # in whatever order they came
    assert re.search(r"\[0(-1)?\] +'everywhere'", shown), "a terminal cannot draw a line again"
    assert "2 ranks ready on the CPU (gloo)" in shown and "Stopped 2 ranks." in shown
    assert "Starting" not in shown, "a terminal shows no progress in place"
    assert "Traceback" not in shown


def test_the_way_vs_code_runs_a_kernel(server: Server, tmp_path: Path) -> None:
    """A kernel beside a server that did not start it has its ranks itself."""
    runtime = Path(server.env["JUPYTER_RUNTIME_DIR"])
    manager = KernelManager(
        kernel_name="python3", connection_file=str(runtime / "kernel-v3b2c7a1.json")
    )
    manager.start_kernel(env=server.env, cwd=str(tmp_path))
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=PATIENCE)
    notebook = Notebook(client, server.env, manager.interrupt_kernel, manager.shutdown_kernel)
    try:
        shown = [notebook.ok(cell).shown for cell in CELLS[:3]]
        assert SAID in shown[2]
        assert server.pools() == []
        notebook.ok(CELLS[3])
    finally:
        notebook.close()


def test_notebook_7_loads_our_extension(tmp_path: Path) -> None:
    pytest.importorskip("notebook", minversion="7", reason="Notebook 7 is not installed")
    built = Path(jupyter_dist_server.__file__).with_name("labextension")
    if not (built / "package.json").exists():
        pytest.skip("the extension is not built")
    extensions = tmp_path / "home" / "data" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "jupyter-dist-server").symlink_to(built)
    server = Server(tmp_path / "home", tmp_path)
    try:
        with urllib.request.urlopen(f"{server.url}tree?token={server.token}") as page:
            config = re.search(
                r'id="jupyter-config-data"[^>]*>(.*?)</script>', page.read().decode(), re.S
            )
        assert config
        loaded = [extension["name"] for extension in json.loads(config[1])["federated_extensions"]]
        assert "jupyter-dist-server" in loaded
    finally:
        server.close()


def test_nbdistributed_notebooks_run(new_notebook: Notebook) -> None:
    notebook = new_notebook
    notebook.ok("%load_ext jupyter_dist_server")
    assert "No pool is running." in notebook.ok("%dist_debug").text
    notebook.ok("%dist_init --num-processes 2 --gpu-ids 0,1")
    notebook.ok("%dist_mode --enable")
    assert notebook.ok("world_size, dist.get_rank() == rank").lines == ["[0-1] (2, True)"]
    notebook.ok("%dist_mode --disable")
    assert notebook.ok("%dist_mode").lines == ["Cells run in the notebook."]
    notebook.ok("%%distributed\nx = torch.ones(1, device=device)\ngpu_id")
    for magic in ("%%rank[0,1]", "%%rank [0-1]"):
        assert notebook.ok(f"{magic}\nx.item()").lines == ["[0-1] 1.0"]
    for magic in ("sync", "dist_status", "dist_debug"):
        assert notebook.ok(f"%{magic}").lines
    notebook.ok("%dist_shutdown")
    notebook.ok("%dist_reset")


def test_ipyparallels_px(new_notebook: Notebook) -> None:
    notebook = new_notebook
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 3")
    assert notebook.ok("%%px\nworld_size").lines == ["[0-2] 3"]
    assert notebook.ok("%%px --targets ::2\nrank").lines == ["[0]   0", "[2]   2"]
    assert notebook.ok("%%px -t 1 --block\nrank").lines == ["[1]   1"]
    notebook.ok("%%px -t [0,2] -o got\nrank")
    assert notebook.ok("{r: got[r].value for r in got}").shown == "{0: 0, 2: 2}\n"
    assert notebook.ok("%px rank > 5").lines == ["[0-2] False"]
    assert "--noblock is not supported" in notebook.fails("%%px --noblock\nrank")
    assert "--local" in notebook.fails("%%px --local\nrank")
    notebook.ok("%autopx")
    assert notebook.ok("world_size + 1").lines == ["[0-2] 4"]
    notebook.ok("%autopx")
    assert notebook.ok("'world_size' in globals()").shown == "False\n"
    code = "%%px -t 1\nrank.nu"

    def completed() -> bool:
        notebook.client.complete(code, len(code))
        reply = notebook.client.get_shell_msg(timeout=PATIENCE)["content"]
        return "numerator" in json.dumps(reply)

    wait_for(completed, "names of a rank, which has a moment to answer each time")
