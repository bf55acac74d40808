"""A Jupyter server on the first host, in an allocation."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import BlockingKernelClient
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from ..notebook_driver import Notebook, open_channels, wait_until_ready
from ..server.openapi import validate_named
from ..server_driver import START
from ..waiting import PATIENCE, wait_for
from .hosts import Hosts

PORT = 8899
TOKEN = "secret"
HEADERS = {"Authorization": f"token {TOKEN}"}


class HostServer:
    """The server.

    Parameters
    ----------
    hosts : Hosts
        All of them.
    *within : str
        A command that runs it, such as ``salloc``.
    """

    def __init__(self, hosts: Hosts, *within: str) -> None:
        self._address = f"{hosts.address(1)}:{PORT}"
        enabled = {"jupyter_dist_server": True, "jupyterlab": False, "notebook_shim": False}
        command = [*within, sys.executable, "-c", START, "--no-browser", "--allow-root"]
        command += [f"--ServerApp.root_dir={hosts.base}", f"--IdentityProvider.token={TOKEN}"]
        command += [f"--ServerApp.ip={hosts.address(1)}", f"--ServerApp.port={PORT}"]
        command += [f"--ServerApp.jpserver_extensions={enabled}"]
        # Files are the same on all hosts, and here: so kernels can be reached by them.
        command += ["--JupyterDist.sampler_linger=0", "--KernelManager.transport=ipc"]
        self._hosts = hosts
        self._log = hosts.base / "log" / "server.out"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                hosts.command(1, *command), env=hosts.environment, stdout=log, stderr=log
            )
        wait_for(self._listens, "the start of the server")

    def _listens(self) -> bool:
        assert self._process.poll() is None, self._log.read_text()
        with contextlib.suppress(urllib.error.URLError):
            self.api("GET", "status")
            return True
        return False

    def api(self, method: str, route: str, body: Any = None) -> Any:
        """Call one of our routes."""
        return self._ask(method, f"jupyter-dist/{route}", body)

    def rename(self, old: str, new: str) -> None:
        """Give a file in the root folder another name, as JupyterLab does."""
        self._ask("PATCH", f"api/contents/{old}", {"path": new})

    def _ask(self, method: str, path: str, body: Any) -> Any:
        request = urllib.request.Request(
            f"http://{self._address}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers=HEADERS,
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            content = response.read()
        return json.loads(content) if content else None

    def notebook(self, name: str = "python3") -> Notebook:
        """Start a kernel, which ends with the hosts at the latest."""
        kernel = self._ask("POST", "api/kernels", {"name": name})["id"]
        runtime = Path(self._hosts.variables["JUPYTER_RUNTIME_DIR"])
        client = BlockingKernelClient(connection_file=str(runtime / f"kernel-{kernel}.json"))
        client.load_connection_file()
        open_channels(client)
        wait_until_ready(client)

        def interrupt() -> None:
            self._ask("POST", f"api/kernels/{kernel}/interrupt", None)

        return Notebook(client, self._hosts.environment, interrupt, lambda: None, kernel)

    def page(self) -> str:
        """Return the small page."""
        request = urllib.request.Request(f"http://{self._address}/jupyter-dist/", headers=HEADERS)
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            page: str = response.read().decode()
        return page

    def start(self, **request: Any) -> dict[str, Any]:
        """Start a pool, and return it when it runs."""
        pool = self.settled(**request)
        assert pool["state"] == "RUNNING", pool["reason"]
        return pool

    def settled(self, **request: Any) -> dict[str, Any]:
        """Start a pool, and return it when it runs or has failed."""
        pool: dict[str, Any] = self.api("POST", "pools", request)

        def is_settled() -> bool:
            pool.update(self.api("GET", f"pools/{pool['id']}"))
            return pool["state"] in ("RUNNING", "FAILED")

        wait_for(is_settled, "the start of a pool")
        return pool

    @contextlib.asynccontextmanager
    async def look(self, *what: str) -> AsyncIterator[WebSocketClientConnection]:
        """Open the stream and say what we look at."""
        url = f"ws://{self._address}/jupyter-dist/stream"
        stream = await websocket_connect(HTTPRequest(url, headers=HEADERS))
        try:
            await stream.write_message(json.dumps({"watch": what}))
            yield stream
        finally:
            stream.close()

    def close(self) -> None:
        """Shut it down; what runs it ends with it."""
        self._server().terminate()
        self._process.wait(PATIENCE)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._server().kill()
        self._process.wait(PATIENCE)

    def _server(self) -> psutil.Process:
        process = psutil.Process(self._process.pid)
        return process.children()[0] if process.name() == "salloc" else process


async def read_until(stream: WebSocketClientConnection, condition: Any) -> dict[str, Any]:
    """Return the first frame of which `condition` holds."""
    while True:
        message = await asyncio.wait_for(stream.read_message(), PATIENCE)
        assert message is not None, "the stream has ended"
        frame: dict[str, Any] = json.loads(message)
        validate_named("StreamFrame", frame)
        if condition(frame):
            return frame
