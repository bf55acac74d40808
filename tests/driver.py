"""Drive real servers and kernels as a person's notebook does."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import BlockingKernelClient, KernelManager

from jupyter_dist_server.notebook.output.pieces import STREAM

from .waiting import PATIENCE, wait_for

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
TAG = "JUPYTER_DIST_TEST"


def environment(home: Path, **extra: str) -> dict[str, str]:
    """Return an environment of its own for one server or kernel, and tag its processes."""
    home.mkdir(parents=True, exist_ok=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY", "PYTEST"))}
    env |= {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("RUNTIME", "DATA")}
    # jupyter and python beside this interpreter must be found by kernelspecs and servers.
    env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), env["PATH"]])
    env |= {"IPYTHONDIR": str(home / "ipython"), TAG: uuid.uuid4().hex}
    env |= {"JUPYTER_CONFIG_DIR": str(home / "config"), "JUPYTER_NO_CONFIG": ""}
    return env | extra


def tagged(env: dict[str, str]) -> list[psutil.Process]:
    """Return the living processes that were started, directly or not, with `env`."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and (
                process.environ().get(TAG) == env[TAG]
            ):
                found.append(process)
    return found


def open_channels(client: BlockingKernelClient) -> None:
    """Connect to a kernel, and lose no message: ZeroMQ drops those that a slow client leaves."""
    client.context.rcvhwm = 0
    client.start_channels()


def wait_until_ready(client: BlockingKernelClient) -> None:
    """Wait for a kernel that may still be starting, or be started again."""

    def is_ready() -> bool:
        try:
            client.wait_for_ready(timeout=PATIENCE)
        except RuntimeError:  # its heart does not beat yet
            return False
        return True

    wait_for(is_ready, "the kernel's answer")


@dataclass
class Result:
    """What one cell showed, as a front end that applies updates and clears would show it."""

    status: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    messages: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    seconds: float = 0.0
    prompts: list[str] = field(default_factory=list)
    """What ``input()`` asked."""
    _clear: bool = False

    def add(self, kind: str, content: dict[str, Any]) -> None:
        """Apply one message."""
        if kind == "clear_output":
            self._clear = True
            if not content["wait"]:
                self.outputs.clear()
            return
        if self._clear and kind != "update_display_data":
            self.outputs.clear()
            self._clear = False
        if kind == "update_display_data":
            for output in self.outputs:
                if output.get("display_id") == content["transient"]["display_id"]:
                    output.update(_shown(content))
        elif kind == "stream":
            last = self.outputs[-1] if self.outputs else {}
            if last.get("name") == content["name"] and "display_id" not in last:
                last["text"] += content["text"]
            else:
                self.outputs.append({"type": kind, **content})
        elif kind == "error":
            self.outputs.append({"type": kind, **content})
        elif kind in ("display_data", "execute_result"):
            display_id = content.get("transient", {}).get("display_id")
            self.outputs.append({"type": kind, "display_id": display_id, **_shown(content)})

    def time_of(self, words: str) -> float:
        """Return after how many seconds something was shown."""
        for moment, message in self.messages:
            if message["msg_type"] != "execute_input" and words in str(message["content"]):
                return moment
        raise AssertionError(f"{words} was not shown")

    def stream(self, name: str) -> str:
        """Return all text of one stream."""
        return ANSI.sub("", "".join(o["text"] for o in self.outputs if o.get("name") == name))

    @property
    def text(self) -> str:
        """Standard output."""
        return self.stream("stdout")

    @property
    def lines(self) -> list[str]:
        """Lines of standard output, without trailing blanks."""
        return [line.rstrip() for line in self.text.splitlines()]

    @property
    def shown(self) -> str:
        """Everything as text, in order."""
        parts = []
        for output in self.outputs:
            if output["type"] == "stream":
                parts.append(output["text"])
            elif output["type"] == "error":
                parts.append("\n".join(output["traceback"]))
            else:
                parts.append(output["data"].get("text/plain", "") + "\n")
        return ANSI.sub("", "".join(parts))

    @property
    def error(self) -> str:
        """The error as shown; empty if the cell went well."""
        shown = [o["traceback"] for o in self.outputs if o["type"] == "error"]
        return ANSI.sub("", "\n".join(line for lines in shown for line in lines))

    def mime(self, kind: str) -> list[str]:
        """Return the content of all displays that have this MIME type."""
        return [o["data"][kind] for o in self.outputs if kind in o.get("data", {})]


def _shown(content: dict[str, Any]) -> dict[str, Any]:
    """Return rich output; text that is a display only to be drawn again counts as a stream's."""
    if stream := content["metadata"].get(STREAM):
        return {"type": "stream", "name": stream, "text": content["data"]["text/plain"] + "\n"}
    return {"data": content["data"]}


class Notebook:
    """One kernel, and a front end that talks to it."""

    def __init__(
        self,
        client: BlockingKernelClient,
        env: dict[str, str],
        interrupt: Callable[[], None],
        close: Callable[[], None],
        kernel_id: str = "",
    ) -> None:
        self.client = client
        self.env = env
        self.interrupt = interrupt
        self.kernel_id = kernel_id
        self._close = close

    def send(self, code: str) -> str:
        """Send a cell without waiting for it."""
        message_id: str = self.client.execute(code, allow_stdin=True)
        return message_id

    def run(self, code: str, timeout: float = PATIENCE, **follow: Any) -> Result:
        """Run a cell; see `follow`."""
        return self.follow(self.send(code), timeout, **follow)

    def follow(
        self,
        message_id: str,
        timeout: float = PATIENCE,
        until: Callable[[Result], bool] | None = None,
        act: Callable[[], None] | None = None,
        answers: Sequence[str | tuple[str, str]] = (),
    ) -> Result:
        """Collect what a cell shows until it is done.

        `act` is called once, as soon as `until` holds. `answers` are given to ``input()``; one
        that is a pair, once its first part is shown.
        """
        result, begun = Result(), time.monotonic()
        pending = [("", answer) if isinstance(answer, str) else answer for answer in answers]
        while time.monotonic() < begun + timeout:
            if pending and len(result.prompts) == len(answers) - len(pending):
                with suppress(queue.Empty):
                    asked = self.client.get_stdin_msg(timeout=0.02)
                    result.prompts.append(asked["content"]["prompt"])
            if len(result.prompts) > len(answers) - len(pending) and pending[0][0] in result.shown:
                self.client.input(pending.pop(0)[1])
            try:
                message = self.client.get_iopub_msg(timeout=0.05)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != message_id:
                continue
            kind, content = message["msg_type"], message["content"]
            result.messages.append((time.monotonic() - begun, message))
            result.add(kind, content)
            if until and act and until(result):
                act, until = act(), None
            if kind == "status" and content["execution_state"] == "idle":
                result.seconds = time.monotonic() - begun
                result.status = self._reply(message_id)["status"]
                return result
        raise AssertionError(f"the cell did not end within {timeout:g} s; so far: {result.shown}")

    def _reply(self, message_id: str) -> dict[str, Any]:
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE)
            if reply["parent_header"].get("msg_id") == message_id:
                content: dict[str, Any] = reply["content"]
                return content

    def ok(self, code: str, **options: Any) -> Result:
        """Run a cell that must go well."""
        result = self.run(code, **options)
        assert result.status == "ok", result.shown
        return result

    def fails(self, code: str, **options: Any) -> str:
        """Run a cell that must fail; return its error as shown."""
        result = self.run(code, **options)
        assert result.status == "error", result.shown
        return result.error

    def close(self) -> None:
        """End the kernel, and with it its pool."""
        self.client.stop_channels()
        self._close()


def plain_notebook(env: dict[str, str], folder: Path) -> Notebook:
    """Start a kernel without a server, as nbconvert or VS Code does."""
    for attempt in range(3):
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel(env=env, cwd=str(folder))
        client = manager.client()
        open_channels(client)
        try:
            client.wait_for_ready(timeout=PATIENCE)
            break
        except RuntimeError:  # another process has taken one of the ports chosen for it
            client.stop_channels()
            manager.shutdown_kernel(now=True)
            if attempt == 2:
                raise

    def close() -> None:
        manager.shutdown_kernel(now=True)
        wait_for(lambda: not tagged(env), "the end of the kernel's processes")

    return Notebook(client, env, manager.interrupt_kernel, close)


class Server:
    """A real `jupyter server` with our extension, in a process of its own."""

    def __init__(
        self, home: Path, root: Path, *options: str, token: str = "secret", **variables: str
    ) -> None:
        self.env = environment(home, **variables)
        self.token = token
        self.root = root
        self.url = ""
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root"]
        command += [f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={token}"]
        # With "localhost" and port 0, IPv4 and IPv6 would get different ports.
        command += ["--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
        # Other extensions take seconds to load, and play no part here.
        others = ("jupyterlab", "jupyter_lsp", "notebook_shim")
        enabled = {"jupyter_dist_server": True, **dict.fromkeys(others, False)}
        command += [f"--ServerApp.jpserver_extensions={enabled}", *options]
        self.process = subprocess.Popen(
            command, env=self.env, cwd=root, stderr=subprocess.PIPE, text=True
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
        """Start a kernel of this server, in a folder of its root."""
        kernel = self.api("POST", "api/kernels", {"name": name, "path": folder})["id"]
        runtime = Path(self.env["JUPYTER_RUNTIME_DIR"])
        client = BlockingKernelClient(connection_file=str(runtime / f"kernel-{kernel}.json"))
        client.load_connection_file()
        open_channels(client)
        wait_until_ready(client)

        def close() -> None:
            with suppress(urllib.error.HTTPError):
                self.api("DELETE", f"api/kernels/{kernel}")
            wait_for(lambda: all(p["kernel_id"] != kernel for p in self.pools()), "the pool's end")

        def interrupt() -> None:
            self.api("POST", f"api/kernels/{kernel}/interrupt")

        return Notebook(client, self.env, interrupt, close, kernel)

    def close(self) -> None:
        """Shut the server down, and check that it leaves no process."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=PATIENCE)
        wait_for(lambda: not tagged(self.env), "the end of the server's processes")
