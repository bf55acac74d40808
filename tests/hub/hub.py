"""A real JupyterHub, and the servers of its users."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from typing import Any

import websocket

from ..network import free_port
from ..result import Result
from ..server.client import Client
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for

PROXY = Path(__file__).parents[2] / ".bench/hub/node_modules/.bin/configurable-http-proxy"
BASE = "/hubs/one/"
SYSTEM_PATH = "/usr/bin:/bin"


def why_not() -> str:
    """Say why there can be no hub here; empty if there can."""
    if sys.platform != "linux" or not shutil.which("useradd"):
        return "needs Linux with useradd"
    if importlib.util.find_spec("jupyterhub") is None or not PROXY.exists():
        return "needs JupyterHub and its proxy; runs by `make test-hub`"
    return ""


class UserServer(Server):
    """A user's server, reached through the hub's proxy."""

    def __init__(self, hub: Hub, user: str, token: str) -> None:
        self.user, self.token, self.process, self.log = user, token, hub.process, hub.log
        self.url = f"{hub.url}user/{user}/"

    def client(self, token: str) -> Client:
        """Return a caller who has a token."""
        return Client(self, {"Authorization": f"token {token}"})

    def socket(self, path: str, token: str) -> websocket.WebSocket:
        """Connect to one of the server's WebSockets."""
        url = self.url.replace("http", "ws", 1) + path
        header = {"Authorization": f"token {token}"}
        return websocket.create_connection(url, header=header, timeout=PATIENCE)


class HubNotebook:
    """A kernel of a user's server; its messages go through the proxy, as those of a browser do."""

    def __init__(self, server: UserServer) -> None:
        self.kernel_id = server.api("POST", "api/kernels", {"name": "python3"})["id"]
        self._socket = server.socket(f"api/kernels/{self.kernel_id}/channels", server.token)

    def ok(self, code: str) -> Result:
        """Run a cell that must go well."""
        header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        header |= {"session": self.kernel_id, "username": "", "date": ""}
        rest = {"channel": "shell", "parent_header": {}, "metadata": {}, "buffers": []}
        self._socket.send(json.dumps({"header": header, "content": {"code": code}, **rest}))
        result, is_idle = Result(), False
        while not (is_idle and result.status):
            message = json.loads(self._socket.recv())
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            result.add(kind, content)
            if kind == "execute_reply":
                result.status = content["status"]
            is_idle |= kind == "status" and content["execution_state"] == "idle"
        assert result.status == "ok", result.shown
        return result

    def close(self) -> None:
        self._socket.close()


class Hub:
    """A JupyterHub with a base URL, which starts servers whose PATH does not lead to our program.

    Parameters
    ----------
    folder : Path
        Where it keeps its files.
    users : sequence of str
        Who may have a server.
    environment : dict
        What the servers have in their environment.
    """

    def __init__(self, folder: Path, users: tuple[str, ...], environment: dict[str, str]) -> None:
        self.users = users
        self.url = f"http://127.0.0.1:{free_port()}{BASE}"
        self._token = uuid.uuid4().hex
        program = Path(sysconfig.get_path("scripts"), "jupyterhub-singleuser")
        configuration = folder / "configuration.json"
        settings = {
            "JupyterHub": {
                "bind_url": self.url,
                "hub_port": free_port(),
                "authenticator_class": "dummy",  # the users have no passwords
                "services": [{"name": "test", "api_token": self._token}],
                "load_roles": [
                    {"name": "test", "scopes": ["tokens", "servers"], "services": ["test"]}
                ],
                # It answers when a server has started or ended, however long that takes.
                "tornado_settings": dict.fromkeys(
                    ("slow_spawn_timeout", "slow_stop_timeout"), PATIENCE
                ),
            },
            "Authenticator": {"allowed_users": users},
            "ConfigurableHTTPProxy": {
                "command": [str(PROXY)],
                "api_url": f"http://127.0.0.1:{free_port()}",
            },
            "Spawner": {
                "cmd": [str(program)],
                "args": ["--ServerApp.terminado_settings=shell_command=/bin/bash"],
                "environment": {"PATH": SYSTEM_PATH} | environment,
                "start_timeout": PATIENCE,
                "http_timeout": PATIENCE,
            },
        }
        configuration.write_text(json.dumps(settings))
        self._log = folder / "hub.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", f"--config={configuration}"],
                cwd=folder,
                stdin=subprocess.DEVNULL,  # as a service has it
                text=True,
                stdout=log,
                stderr=log,
            )
        wait_for(self._listens, "the hub's answer")

    @property
    def log(self) -> list[str]:
        """What the hub and the servers have logged."""
        return self._log.read_text(errors="replace").splitlines(keepends=True)

    def _listens(self) -> bool:
        try:
            self._api("GET", "")
        except (urllib.error.URLError, ConnectionError):
            assert self.process.poll() is None, "".join(self.log)
            return False
        return True

    def _api(self, method: str, path: str) -> Any:
        request = urllib.request.Request(
            f"{self.url}hub/api/{path}",
            method=method,
            headers={"Authorization": f"token {self._token}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            content = response.read()
        return json.loads(content) if content else None

    def start_server(self, user: str) -> UserServer:
        """Start a user's server, and reach it with a token of that user."""
        token = self._api("POST", f"users/{user}/tokens")["token"]
        try:
            self._api("POST", f"users/{user}/server")
        except urllib.error.HTTPError as error:
            raise AssertionError("".join(self.log)) from error
        return UserServer(self, user, token)

    def stop_server(self, user: str) -> None:
        """Stop a user's server, as the hub's page does."""
        self._api("DELETE", f"users/{user}/server")

    def close(self) -> None:
        """End the hub, and with it its proxy."""
        self.process.terminate()
        self.process.wait(PATIENCE)
