"""Kernels find their server, whatever its credentials and address are."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from jupyter_client import BlockingKernelClient
from jupyter_server.auth import passwd

from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.server_file import file_name

from ..server_driver import Server
from ..waiting import PATIENCE
from .client import Client

PASSWORD = "correct horse"
FIND = """
from jupyter_dist_server.notebook.session.server_control import find_server
server = find_server()
print(server._url, server.find())
"""

Login = Callable[[Server], Client]


def by_browser(server: Server) -> Client:
    """Open the first page, and give the password where one is asked for."""
    client = Client(server, {})
    cookies: dict[str, str] = {}

    def visit(method: str, page: str, **options: Any) -> None:
        with client.open(method, page, **options) as response:
            for cookie in response.headers.get_all("Set-Cookie") or []:
                name, value = cookie.partition(";")[0].split("=", 1)
                cookies[name] = value
        client.headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())

    if any("password" in option for option in server.process.args):
        visit("GET", "login")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        body = urlencode({"password": PASSWORD, "_xsrf": cookies["_xsrf"]}).encode()
        visit("POST", "login", body=body, headers=form)
    visit("GET", "lab")
    client.headers["X-XSRFToken"] = cookies["_xsrf"]
    return client


def said_in_kernel(server: Server, client: Client, code: str) -> str:
    """Start a kernel over REST, run code in it, and return what it printed."""
    answer = client.raw("POST", "api/kernels", body={"name": "python3"})
    assert answer.status == 201, answer.body
    kernel_id = answer.body["id"]
    file = Path(server.env["JUPYTER_RUNTIME_DIR"], f"kernel-{kernel_id}.json")
    kernel = BlockingKernelClient(connection_file=str(file))
    kernel.load_connection_file()
    kernel.start_channels(hb=False)  # a busy machine misses beats
    kernel.wait_for_ready(timeout=PATIENCE)
    said: list[str] = []

    def collect(message: dict[str, Any]) -> None:
        content = message["content"]
        said.append(content.get("text", "") + "\n".join(content.get("traceback", [])))

    kernel.execute_interactive(code, output_hook=collect, timeout=PATIENCE)
    kernel.stop_channels()
    client.raw("DELETE", f"api/kernels/{kernel_id}")
    return "".join(said)


def discovery_file(server: Server) -> Path:
    """Return the file that a server wrote for its kernels."""
    folder = Path(server.env["JUPYTER_RUNTIME_DIR"])
    (file,) = folder.glob(f"jupyter-dist-*-{server.process.pid}.json")
    return file


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the home that all servers of this module share, so that each finds files of others.

    In it are also what a server that was killed has left, and a file that is being written.
    """
    home = tmp_path_factory.mktemp("home")
    runtime = home / "runtime"
    runtime.mkdir()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    stale = {"url": "http://127.0.0.1:9/", "secret": "x", "certfile": ""}
    ours = vars(ProcessRef.of(os.getpid()))
    for pid, process in ((ended.pid, ours | {"pid": ended.pid}), (os.getpid(), ours)):
        file = runtime / file_name(pid)
        file.write_text(json.dumps(stale | {"process": process}))
        file.chmod(0o600)
    (runtime / file_name(1)).write_text('{"url": "ht')
    return home


@pytest.mark.parametrize(
    ("options", "token", "login"),
    [
        ([f"--PasswordIdentityProvider.hashed_password={passwd(PASSWORD)}"], "", by_browser),
        ([], "", by_browser),
        (["--ServerApp.base_url=/pre/fix/"], "secret", Client),
    ],
    ids=["password", "no-token", "base-url"],
)
def test_a_kernel_finds_its_server(
    home: Path, tmp_path: Path, options: list[str], token: str, login: Login
) -> None:
    alone = Server(home, tmp_path, *options, token=token)
    try:
        file = discovery_file(alone)
        if "--ServerApp.base_url=/pre/fix/" in options:
            assert alone.url.endswith("/pre/fix/")
        if token or options:
            assert Client(alone, {}).call("GET", "status").status == 403
        said = said_in_kernel(alone, login(alone), FIND)
        assert said == f"{alone.url}jupyter-dist/ None\n"

        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        content = json.loads(file.read_text())
        assert content["process"]["pid"] == alone.process.pid
        assert len(content["secret"]) >= 32
        assert content["secret"] not in "".join(alone.log)
    finally:
        alone.close()
    assert not file.exists()


SERVER = """
import sys
from types import SimpleNamespace
from jupyter_dist_server.common.server_file import read_discovery_files, write_discovery_file
url = {"certfile": "", "ip": "", "port": int(sys.argv[1]), "base_url": "/", "root_dir": "/"}
file = write_discovery_file(SimpleNamespace(**url), "secret")
print("written", flush=True)
sys.stdin.read()
print([known.url for known in read_discovery_files()], file.exists())
file.unlink()
"""


def test_servers_in_containers_that_share_a_home_leave_each_others_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same pid, each in its own namespace."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if sys.platform != "linux" or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("needs Linux, and the right to make namespaces")
    started = [
        subprocess.Popen(
            [*inside, sys.executable, "-c", SERVER, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for port in (1, 2)
    ]
    for server in started:
        assert server.stdout and server.stdout.readline() == "written\n"
    for port, server in enumerate(started, 1):
        said, _ = server.communicate(timeout=PATIENCE)
        assert said == f"['http://localhost:{port}/'] True\n"


def test_a_kernel_finds_a_server_with_a_token(server: Server, client: Client) -> None:
    assert said_in_kernel(server, client, FIND) == f"{server.url}jupyter-dist/ None\n"


def test_a_kernel_of_another_server_is_not_taken_in(server: Server, client: Client) -> None:
    """A kernel that knows a server which is not its own uses its own ranks instead."""
    code = """
from jupyter_dist_server.notebook.session import server_control
server_control.kernel_id = lambda: "11111111-2222-3333-4444-555555555555"
print(server_control.find_server())
"""
    assert said_in_kernel(server, client, code) == "None\n"
