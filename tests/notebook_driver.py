"""Drive a real kernel as a person's notebook does."""

from __future__ import annotations

import ast
import queue
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jupyter_client import BlockingKernelClient, KernelManager

from .environment import tagged
from .releases import HAS_SUBSHELLS
from .result import Result
from .waiting import PATIENCE, wait_for


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
        while True:
            result = self.follow(self.send(code), timeout, **follow)
            if HAS_SUBSHELLS or result.status != "aborted":
                return result
            # Before ipykernel 7, also a cell that is sent right after a failed one is dropped.

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
                    if asked["parent_header"].get("msg_id") == message_id:  # not of a stopped cell
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
            result.messages.append(message)
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

    def wait_until_queued(self) -> None:
        """Wait until the kernel has what was sent; the cell that runs may not end before that.

        The thread that takes messages in has handed over earlier ones when a subshell answers.
        """
        session, control = self.client.session, self.client.control_channel
        if not HAS_SUBSHELLS:  # what was sent lies in the socket, as this thread runs the cell
            control.send(session.msg("kernel_info_request", {}))
            self.client.get_control_msg(timeout=PATIENCE)
            return
        control.send(session.msg("create_subshell_request", {}))
        subshell = self.client.get_control_msg(timeout=PATIENCE)["content"]["subshell_id"]
        question = session.msg("kernel_info_request", {})
        question["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(question)
        self._reply(question["header"]["msg_id"])
        control.send(session.msg("delete_subshell_request", {"subshell_id": subshell}))
        self.client.get_control_msg(timeout=PATIENCE)

    def stops_run_all(self, failing: str, folder: Path) -> bool:
        """Tell whether a cell that fails on ranks keeps the next one from running."""
        go = folder / "go"
        waiting = f"while not os.path.exists({str(go)!r}): time.sleep(0.01)"
        first = self.send(f"%%distributed\nimport os, time\n{waiting}\n{failing}")
        second = self.send("print('must not run')")
        self.wait_until_queued()
        go.touch()
        assert self.follow(first).status == "error"
        return self.follow(second).status == "aborted"

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

    def refused(self, code: str, **options: Any) -> str:
        """Run a cell that must fail with an error of ours; return that error's code."""
        self.fails(code, **options)
        return self.error_code()

    def error_code(self) -> str:
        """Return the code of the last cell's error, which is one of ours."""
        asked = {"code": "__import__('sys').last_value.code"}
        reply = {"status": "aborted"}  # as `run` says
        while reply["status"] == "aborted":
            reply = self._reply(self.client.execute("", silent=True, user_expressions=asked))
        return str(ast.literal_eval(reply["user_expressions"]["code"]["data"]["text/plain"]))

    def next_number(self) -> int:
        """Return the number of the next cell, which kernels of any version tell alike."""
        messages = self.ok("pass").messages
        (number,) = (
            message["content"]["execution_count"]
            for message in messages
            if message["msg_type"] == "execute_input"
        )
        return int(number) + 1

    def close(self) -> None:
        """End the kernel, and with it its pool."""
        self.client.stop_channels()
        self._close()


def plain_notebook(env: dict[str, str], folder: Path, python: str = sys.executable) -> Notebook:
    """Start a kernel without a server, as nbconvert or VS Code does."""
    for attempt in range(3):
        manager = KernelManager(kernel_name="python3")
        manager.kernel_spec.argv[0] = python
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
