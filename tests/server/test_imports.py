"""The server and the magics start without what only ranks need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ..environment import environment
from ..waiting import PATIENCE

SAY = "import json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
SERVER = """
from jupyter_server.serverapp import ServerApp
server = ServerApp.instance()
server.initialize([
    "--ServerApp.jpserver_extensions={'jupyter_dist_server': True}",
    "--ServerApp.open_browser=False", "--ServerApp.port=0", "--allow-root",
])
manager = server.web_app.settings["jupyter_dist_manager"]
assert manager.pools == {}
"""
MAGICS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "jupyter_dist_server")
assert shell.find_line_magic("dist_init")
"""


def imported(home: Path, code: str) -> set[str]:
    """Run code in a fresh interpreter, and return the packages that it has imported."""
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SAY}"],
        cwd=home,
        env=environment(home, JUPYTER_NO_CONFIG="1"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


def test_importing_the_package_costs_nothing(tmp_path: Path) -> None:
    packages = imported(tmp_path, "import jupyter_dist_server")
    assert "jupyter_dist_server" in packages
    assert not packages & {"torch", "numpy", "jupyter_server", "tornado", "zmq", "ipykernel"}


def test_the_server_imports_neither_torch_nor_ipykernel(tmp_path: Path) -> None:
    packages = imported(tmp_path, SERVER)
    assert {"jupyter_dist_server", "jupyter_server"} <= packages
    assert not packages & {"torch", "numpy", "ipykernel", "pynvml"}


def test_the_magics_import_neither_torch_nor_the_server(tmp_path: Path) -> None:
    packages = imported(tmp_path, MAGICS)
    assert not packages & {"torch", "numpy", "jupyter_server", "pynvml"}
