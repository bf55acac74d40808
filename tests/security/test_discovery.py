"""A kernel tells its environment to its own server, and nobody who has taken that one's port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_dist_server.common.processes.process_ref import ProcessRef
from jupyter_dist_server.common.server_file import DiscoveryFile, read_discovery_files
from jupyter_dist_server.notebook.session import server_control
from jupyter_dist_server.notebook.session.server_control import ServerControl, find_server

from ..server_driver import Server
from ..waiting import PATIENCE
from . import stranger

pytestmark = pytest.mark.stranger

TAKE_THE_PORT = """
# Answers whatever is asked, and shows what it heard.
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
listener.settimeout(60)
print("ready", flush=True)
heard = b""
while b"the end" not in heard:
    sock, _ = listener.accept()
    sock.settimeout(60)
    try:
        heard += sock.recv(65536)
        sock.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 14\\r\\n\\r\\n{"pool": null}')
    except OSError:
        pass
    sock.close()
print(heard.decode())
"""


@pytest.fixture
def killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Return the file that a server left which was killed, and its content."""
    server = Server(tmp_path / "home", tmp_path)
    (file,) = Path(server.env["JUPYTER_RUNTIME_DIR"]).glob("jupyter-dist-*.json")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(file.parent))
    monkeypatch.setattr(server_control, "kernel_id", lambda: "a-kernel")
    content = json.loads(file.read_text())
    assert [known.url for known in read_discovery_files()] == [content["url"]]
    ServerControl(msgspec.convert(content, DiscoveryFile), "a-kernel").check()
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    yield file, content


def heard_by(fake: subprocess.Popen[str], port: int) -> str:
    """Tell it that this is the end, and return what it had heard."""
    end = f"import socket; socket.create_connection(('127.0.0.1', {port})).sendall(b'the end')"
    subprocess.run([sys.executable, "-c", end], check=True)
    return fake.communicate(timeout=PATIENCE)[0]


@pytest.mark.parametrize("whose", ["strangers", "own"])
def test_who_has_taken_a_killed_servers_port_is_told_nothing(
    killed: tuple[Path, dict[str, Any]], whose: str
) -> None:
    file, content = killed
    assert list(read_discovery_files()) == []
    alive = vars(ProcessRef.of(os.getpid()))
    for foreign in ("junk", "[]", json.dumps({"process": alive}), "[" * 5000):
        file.write_text(foreign)
        assert list(read_discovery_files()) == []
    for late in ({"start_ticks": 1}, {"boot": "another"}):  # the pid is used again
        file.write_text(json.dumps(content | {"process": alive | late}))
        assert list(read_discovery_files()) == []
    # Even if it were believed that the server lives:
    file.write_text(json.dumps(content | {"process": alive}))
    assert len(list(read_discovery_files())) == 1
    port = int(content["url"].split(":")[2].strip("/"))
    own = [sys.executable, "-c", f"import socket, sys\n{TAKE_THE_PORT}", str(port)]
    fake = (
        stranger.begin(TAKE_THE_PORT, port)
        if whose == "strangers"
        else subprocess.Popen(own, stdout=subprocess.PIPE, text=True)
    )
    try:
        assert fake.stdout and fake.stdout.readline() == "ready\n"
        assert find_server() is None
        known = ServerControl(msgspec.convert(content, DiscoveryFile), "a-kernel")
        with pytest.raises(
            Exception, match=str(stranger.UID) if whose == "strangers" else "Another program"
        ):
            known.start({"num_ranks": 1, "base_env": {"TOKEN": "hush"}})
        heard = heard_by(fake, port)
        assert "hush" not in heard and content["secret"] not in heard
        if whose == "strangers":
            assert heard.strip() == "the end"
    finally:
        stranger.end(fake)


def test_a_discovery_file_of_another_user_is_not_read(
    killed: tuple[Path, dict[str, Any]],
) -> None:
    file, content = killed
    file.write_text(json.dumps(content | {"process": vars(ProcessRef.of(os.getpid()))}))
    assert len(list(read_discovery_files())) == 1
    os.chown(file, stranger.UID, stranger.UID)
    assert list(read_discovery_files()) == []
