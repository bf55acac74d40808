"""Front ends: they send cells to kernels as a notebook does, and note when each message came."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import websocket
import zmq
from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)

from tests.network import free_port
from tests.result import ANSI
from tests.waiting import wait_for

Message = dict[str, Any]
Received = tuple[float, str, str, Message]
"""When, from which kernel, on which channel, what."""

_DISPLAYS = ("display_data", "update_display_data", "execute_result")
_VISIBLE = (*_DISPLAYS, "stream", "error", "comm_msg")
RANKS_MIME = "application/vnd.jupyter-distributed.rank+json"
"""jupyter-distributed shows all outputs of its ranks so far in it."""


@dataclass
class Run:
    """The messages and times of one cell."""

    sent: float
    idle: float = 0.0
    pressed: float = 0.0
    """When Stop was pressed."""
    messages: list[tuple[float, str, Message]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """From sending the cell to the idle status of the last kernel."""
        return self.idle - self.sent

    @property
    def seconds_to_last_output(self) -> float:
        """From sending the cell to its last visible output, or to its end."""
        shown = (t for t, _, message in self.messages if message["msg_type"] in _VISIBLE)
        return max(self.idle, *shown, self.idle) - self.sent

    def seconds_to(self, words: str) -> float:
        """Return the time from sending the cell to the first message that shows some words."""
        for when, _, message in self.messages:
            if message["msg_type"] in _VISIBLE and words in json.dumps(message["content"]):
                return when - self.sent
        raise ValueError(f"{words} was never shown")

    def _outputs(self) -> Iterable[tuple[str, str, Message]]:
        """Return what a front end shows that applies updates: ``(source, type, content)``."""
        shown: list[tuple[str, str, Message]] = []
        places: dict[str, list[int]] = {}
        by_rank: dict[str, Message] = {}
        for _, source, message in self.messages:
            kind, content = message["msg_type"], message["content"]
            if kind in _DISPLAYS:
                identity = content.get("transient", {}).get("display_id", "")
                if RANKS_MIME in content["data"]:
                    by_rank[identity] = content["data"][RANKS_MIME]
                    continue
                if kind == "update_display_data":
                    for place in places.get(identity, ()):
                        shown[place] = source, "display_data", content
                    continue
                places.setdefault(identity, []).append(len(shown))
            elif kind not in ("stream", "error"):
                continue
            shown.append((source, kind, content))
        for payload in by_rank.values():
            for rank in payload["ranks"]:
                source = f"rank{rank['rank']}"
                shown += [(source, o["type"], o["content"]) for o in rank["outputs"]]
        return shown

    @property
    def text(self) -> str:
        """All that was shown, as text, one source after the other."""
        texts: dict[str, list[str]] = {}
        for source, kind, content in self._outputs():
            if kind == "stream":
                text = content["text"]
            elif kind == "error":
                text = "\n".join(content["traceback"]) + f"\n{content['ename']}\n"
            else:
                text = str(content["data"].get("text/plain", "")) + "\n"
            texts.setdefault(source, []).append(text)
        return ANSI.sub("", "\n".join("".join(texts[source]) for source in sorted(texts)))

    def ranks_that_said(self, word: str) -> dict[int, str]:
        """Return what ranks printed as ``<word><rank>=<value>.``, by rank."""
        found = re.findall(rf"{word}(\d+)=(\w*)\.", self.text)
        return {int(rank): value for rank, value in found}


class Front:
    def send_cell(self, code: str) -> set[str]:
        """Send a cell; return the IDs of the requests."""
        raise NotImplementedError

    def receive(self, seconds: float) -> Received | None:
        """Return the next message, if one comes in time."""
        raise NotImplementedError

    def interrupt(self) -> None:
        raise NotImplementedError

    def run(
        self, code: str, timeout: float = 60.0, linger: float = 0.0, stop_after: str = ""
    ) -> Run:
        """Run a cell until nothing has come for `linger` seconds; it must end in time.

        With `stop_after`, Stop is pressed shortly after these words were shown.
        """
        run = Run(time.perf_counter())
        busy = self.send_cell(code)
        unanswered = set(busy)
        last = run.sent
        while busy or unanswered or time.perf_counter() < last + linger:
            if (busy or unanswered) and time.perf_counter() > run.sent + timeout:
                raise TimeoutError(f"no end within {timeout:g} s of: {code[:60]!r}")
            received = self.receive(0.1)
            if stop_after and stop_after in run.text:
                time.sleep(0.3)  # until all ranks are where the first one is
                stop_after, run.pressed = "", time.perf_counter()
                self.interrupt()
            if not received:
                continue
            when, source, channel, message = received
            parent = message["parent_header"].get("msg_id")
            kind, content = message["msg_type"], message["content"]
            if channel == "iopub":
                run.messages.append((when, source, message))
                last = when
                if kind == "status" and content["execution_state"] == "idle" and parent in busy:
                    busy.discard(parent)
                    run.idle = when
            elif kind == "execute_reply" and parent in unanswered:
                unanswered.discard(parent)
                if content["status"] != "ok":
                    run.errors.append(f"{content.get('ename')}: {content.get('evalue')}")
        return run


class Direct(Front):
    """One or more kernels, over ZMQ."""

    def __init__(
        self, clients: list[BlockingKernelClient], managers: Sequence[KernelManager] = ()
    ) -> None:
        self._clients = clients
        self._managers = managers
        self._poller = zmq.Poller()
        self._channels: dict[Any, tuple[int, str]] = {}
        for number, client in enumerate(clients):
            client.start_channels(hb=False)
            try:
                client.wait_for_ready(timeout=120)
            except RuntimeError:
                self.close()  # ZMQ would wait for the sockets of a kernel that is gone
                raise
            for channel in ("iopub", "shell"):
                channel_socket = getattr(client, f"{channel}_channel").socket
                self._poller.register(channel_socket, zmq.POLLIN)
                self._channels[channel_socket] = number, channel

    def send_cell(self, code: str) -> set[str]:
        return {client.execute(code, allow_stdin=False) for client in self._clients}

    def receive(self, seconds: float) -> Received | None:
        ready = [self._channels[s] + (s,) for s, _ in self._poller.poll(int(seconds * 1e3))]
        if not ready:
            return None
        number, channel, ready_socket = min(ready, key=lambda found: found[1])  # iopub first
        session = self._clients[number].session
        _, parts = session.feed_identities(ready_socket.recv_multipart())
        when = time.perf_counter()
        return when, f"kernel{number}", channel, session.deserialize(parts)

    def interrupt(self) -> None:
        for manager in self._managers:
            manager.interrupt_kernel()

    def close(self) -> None:
        for client in self._clients:
            client.stop_channels()


def start_kernels(python: str, environments: list[dict[str, str]], home: Path) -> Direct:
    """Start one plain kernel in each environment."""
    managers = []
    command = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with open(home / "kernels.log", "a") as log:
        for environment in environments:
            manager = KernelManager()
            manager._kernel_spec = KernelSpec(argv=command, display_name="", language="python")
            manager.start_kernel(env=environment, cwd=str(home), stdout=log, stderr=log)
            managers.append(manager)
    return Direct([manager.client() for manager in managers], managers)


class Served(Front):
    """A kernel of a real Jupyter server: REST, and the WebSocket that JupyterLab uses.

    Tornado leaves Nagle's algorithm on, so a client that delays its acknowledgements waits 40 ms
    for the second of two small messages, whatever runs in the kernel. Ours acknowledges at once.
    """

    def __init__(self, command: list[str], environment: dict[str, str], home: Path) -> None:
        self._runtime = Path(environment["JUPYTER_RUNTIME_DIR"])
        self._session = Session()
        options = ["--no-browser", "--allow-root", f"--ServerApp.root_dir={home}"]
        options += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={free_port()}"]
        with open(home / "server.log", "w") as log:
            self.process = subprocess.Popen(
                [*command, *options], env=environment, cwd=home, stdout=log, stderr=log
            )
        self._about: dict[str, Any] = wait_for(self._is_up, "the server's start", timeout=120)
        self.kernel: str = self.api("POST", "api/kernels", {"name": "python3"})["id"]
        self.connect()
        self.run("pass", timeout=120)

    def _is_up(self) -> dict[str, Any] | None:
        assert self.process.poll() is None, "the server ended; see server.log"
        try:
            file = self._runtime / f"jpserver-{self.process.pid}.json"
            self._about = json.loads(file.read_text())
            self.api("GET", "api/status")
        except (OSError, json.JSONDecodeError):  # urllib's errors are OSErrors
            return None
        return self._about

    def api(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            self._about["url"] + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"token {self._about['token']}"},
        )
        with urllib.request.urlopen(request, timeout=180) as response:
            content = response.read()
        return json.loads(content) if content else None

    def connect(self, comm: str = "") -> None:
        """Connect to the kernel, and open a comm if one is named."""
        url = self._about["url"].replace("http", "ws", 1)
        self.channels = websocket.create_connection(
            f"{url}api/kernels/{self.kernel}/channels"
            f"?session_id={self._session.session}&token={self._about['token']}",
            subprotocols=["v1.kernel.websocket.jupyter.org"],
            timeout=60,
        )
        if comm:
            about = {"comm_id": uuid.uuid4().hex, "target_name": comm, "data": {}}
            self._send("comm_open", about)

    def direct(self) -> Direct:
        """Connect to the same kernel past the server."""
        connection = str(self._runtime / f"kernel-{self.kernel}.json")
        client = BlockingKernelClient(connection_file=connection)
        client.load_connection_file()
        return Direct([client])

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        message = self._session.msg(kind, content)
        packed = serialize_msg_to_ws_v1(message, "shell", self._session.pack)
        self.channels.send_binary(packed)
        return message["msg_id"]

    def send_cell(self, code: str) -> set[str]:
        request = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        return {self._send("execute_request", {**request, "stop_on_error": True})}

    def interrupt(self) -> None:
        self.api("POST", f"api/kernels/{self.kernel}/interrupt", {})

    def receive(self, seconds: float) -> Received | None:
        self.channels.settimeout(seconds)
        try:
            packed = self.channels.recv()
        except websocket.WebSocketTimeoutException:
            return None
        when = time.perf_counter()
        if hasattr(socket, "TCP_QUICKACK") and self.channels.sock:
            self.channels.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        channel, parts = deserialize_msg_from_ws_v1(packed)
        header, parent, _, content = (json.loads(part) for part in parts[:4])
        message = {"header": header, "parent_header": parent, "content": content}
        return when, "kernel0", channel, message | {"msg_type": header["msg_type"]}
