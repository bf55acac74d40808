"""Drive a real Jupyter server, in a process of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client import BlockingKernelClient

from . import SLOW_TO_IMPORT
from .environment import environment, tagged
from .network import free_port
from .notebook_driver import Notebook, open_channels
from .waiting import PATIENCE, wait_for

START = (
    f"import sys; sys.modules[{SLOW_TO_IMPORT!r}] = None\n"
    "from jupyter_server.serverapp import main; main()"
)
"""What ``jupyter server`` runs, but for that import."""
_STARTS = 3
"""Kernels that are started until one answers."""
_LOOK = 5.0
"""Seconds between two looks whether a new kernel has died."""


def _ports(client: BlockingKernelClient) -> list[int]:
    names = ("shell", "iopub", "stdin", "hb", "control")
    return [getattr(client, f"{name}_port") for name in names]


class Server:
    """A real `jupyter server` with our extension, in a process of its own."""

    def __init__(
        self, home: Path, root: Path, *options: str, token: str = "secret", **variables: str
    ) -> None:
        self.env = environment(home, **variables)
        self.token = token
        self.root = root
        self.url = ""
        command = [sys.executable, "-c", START, "--no-browser", "--allow-root"]
        command += [f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={token}"]
        # Given port 0, an older server would not say which one it has got.
        command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={free_port()}"]
        # Other extensions take seconds to load, and play no part here.
        others = ("jupyterlab", "jupyter_lsp", "notebook_shim")
        enabled = {"jupyter_dist_server": True, **dict.fromkeys(others, False)}
        command += [f"--ServerApp.jpserver_extensions={enabled}", *options]
        self.process = subprocess.Popen(
            command,
            env=self.env,
            cwd=root,
            stdin=subprocess.DEVNULL,  # in a terminal, it would ask before it stops
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log: list[str] = []
        self._ready = threading.Event()
        threading.Thread(target=self._follow_log, daemon=True).start()
        assert self._ready.wait(PATIENCE) and self.url, "".join(self.log)
        wait_for(self._listens, "the server's answer")  # it logs its URL before it listens

    def _listens(self) -> bool:
        try:
            self.api("GET", "api/status")
        except urllib.error.HTTPError:
            return True
        except urllib.error.URLError:
            return False
        return True

    def _follow_log(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.log.append(line)
            if match := re.search(r"(https?://127\.0\.0\.1:\d+/\S*?)(tree)?(\?|$)", line):
                self.url = self.url or match[1]
                self._ready.set()
        self._ready.set()

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Call the server's REST API; errors come as `urllib.error.HTTPError`."""
        request = urllib.request.Request(
            self.url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"token {self.token}"} if self.token else {},
        )
        assert self.process.poll() is None, "".join(self.log)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            content = response.read()
        return json.loads(content) if content else None

    def pools(self) -> list[dict[str, Any]]:
        """Return the living pools."""
        pools = self.api("GET", "jupyter-dist/pools")["pools"]
        return [pool for pool in pools if pool["ended"] is None]

    def notebook(self, name: str = "python3", folder: str = "") -> Notebook:
        """Start a kernel of this server, in a folder of its root.

        Another process may take one of the ports that were chosen for a kernel before it has them:
        it then dies at each of its starts, or has other ports at the next, and another kernel is
        started.
        """
        for _ in range(_STARTS):
            kernel = self.api("POST", "api/kernels", {"name": name, "path": folder})["id"]
            runtime = Path(self.env["JUPYTER_RUNTIME_DIR"])
            client = BlockingKernelClient(connection_file=str(runtime / f"kernel-{kernel}.json"))
            client.load_connection_file()
            open_channels(client)
            if self._answers(kernel, client):
                break
            client.stop_channels()
            with suppress(urllib.error.HTTPError):
                self.api("DELETE", f"api/kernels/{kernel}")
        else:
            raise AssertionError("no kernel could start: " + "".join(self.log))

        def close() -> None:
            with suppress(urllib.error.HTTPError):
                self.api("DELETE", f"api/kernels/{kernel}")
            wait_for(lambda: all(p["kernel_id"] != kernel for p in self.pools()), "the pool's end")

        def interrupt() -> None:
            self.api("POST", f"api/kernels/{kernel}/interrupt")

        return Notebook(client, self.env, interrupt, close, kernel)

    def _answers(self, kernel: str, client: BlockingKernelClient) -> bool:
        """Wait for a new kernel; false if it has died, or is elsewhere now."""
        known = _ports(client)

        def state() -> str:
            try:
                client.wait_for_ready(timeout=_LOOK)
            except RuntimeError:  # its heart does not beat yet
                if kernel not in [one["id"] for one in self.api("GET", "api/kernels")]:
                    return "dead"
                with suppress(OSError, ValueError):  # it is just being written
                    client.load_connection_file()
                return "" if _ports(client) == known else "elsewhere"
            return "ready"

        return bool(wait_for(state, "the kernel's answer") == "ready")

    def close(self) -> None:
        """Shut the server down, and check that it leaves no process."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE)
        wait_for(lambda: not tagged(self.env), "the end of the server's processes")
