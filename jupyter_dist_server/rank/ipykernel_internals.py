"""ipykernel's and IPython's private API that ranks use, under public names of ours.

Ranks run with every ipykernel from 6.17.1 on, also with later releases. So each private name is
looked up by itself, and none is required: a rank has its own substitute, or loses the feature in
`_HOOKS`. `tests/rank/test_internals.py` says what needs each name, `tests/rank/
test_other_releases.py` renames each in turn. Only this module imports ipykernel.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import getpass
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread
from ipykernel.iostream import OutStream as OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.error import StdinNotImplementedError
from traitlets import default
from zmq.eventloop.zmqstream import ZMQStream

from ..common.errors import message_of
from ..common.protocol.jupyter_messages import Content
from ..common.protocol.pool_session import PoolSession

_HOOKS: tuple[tuple[type, str, str], ...] = (
    (IPythonKernel, "_publish_status", "cells become slower"),
    (ZMQInteractiveShell, "_showtraceback", "errors are shown without their place in the output"),
    (ZMQInteractiveShell, "_get_exc_info", "tracebacks of interrupted cells show frames of ours"),
)
"""Methods that ranks override, and what is lost in a release without them."""


def losses() -> list[str]:
    """Say what ranks cannot do with this release of ipykernel or IPython."""
    return [
        f"This release of {owner.__module__.partition('.')[0]} has no "
        f"{owner.__name__}.{name}: {lost}."
        for owner, name, lost in _HOOKS
        if not hasattr(owner, name)
    ]


class BaseKernel(IPythonKernel):
    """ipykernel's kernel."""

    control_msg_types = [*IPythonKernel.control_msg_types, "list_subshell_request"]  # noqa: RUF012
    _execute_sleep = 0.0  # ipykernel's half millisecond covers a race that our client avoids
    session: Any
    _may_ask: bool | None = None
    """Whether `input()` may ask the user; `None` while no cell of ours runs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # ipykernel 7 holds a lock during a request. Without it, we hold our own.
        lock = getattr(self, "_main_asyncio_lock", None)
        self.between_cells: asyncio.Lock = lock or asyncio.Lock()
        """Held while a cell runs."""
        self._locks_requests = lock is None

    def start(self) -> None:
        """Begin to serve, while the other threads that receive messages wait.

        ipykernel sets their sockets up in this thread, and ZMQ allows one thread at a time. An
        earlier request would have no reply.
        """
        with contextlib.ExitStack() as stack:
            for name in ("control", "shell_channel"):
                if thread := getattr(self, f"{name}_thread", None):
                    stack.enter_context(_waiting(thread))
            super().start()

    async def dispatch_shell(self, *arguments: Any, **options: Any) -> Any:
        """Deal with a request of the shell channel, while no cell runs."""
        on_main = threading.current_thread() is threading.main_thread()
        if not (self._locks_requests and on_main):  # a subshell answers during the cell
            return await super().dispatch_shell(*arguments, **options)
        async with self.between_cells:
            return await super().dispatch_shell(*arguments, **options)

    def list_subshell_request(self, stream: Any, ident: Any, parent: Content) -> Any:
        """List the subshells; before ipykernel 7, say that there are none."""
        if answer := getattr(super(), "list_subshell_request", None):
            return answer(stream, ident, parent)
        refusal = {"status": "error", "ename": "NoSubshells", "evalue": "", "traceback": []}
        return self.session.send(stream, "list_subshell_reply", refusal, parent, ident)

    @property
    def status_topic(self) -> bytes:
        """The topic of the kernel's status on iopub."""
        return f"kernel.{self.ident}.status".encode()

    def has_followers(self) -> bool:
        """Tell whether to publish the status."""
        return True

    def _publish_status(self, *arguments: Any, **options: Any) -> None:
        if self.has_followers():
            super()._publish_status(*arguments, **options)

    def ask_user(self, prompt: str, parent: Content, password: bool) -> str:
        """Return the user's answer to ``input()``."""
        raise NotImplementedError

    def raw_input(self, prompt: object = "") -> Any:
        """Be ``input()``."""
        if self._may_ask is None:
            return super().raw_input(prompt)
        return self._ask("raw_input", str(prompt), password=False)

    def getpass(self, prompt: str = "", *arguments: Any, **options: Any) -> Any:
        """Be ``getpass.getpass()``."""
        if self._may_ask is None:
            return super().getpass(prompt, *arguments, **options)
        return self._ask("getpass", prompt, password=True)

    def _ask(self, name: str, prompt: str, password: bool) -> str:
        if not self._may_ask:
            why = "but this frontend does not support input requests."
            raise StdinNotImplementedError(f"{name} was called, {why}")
        return self.ask_user(prompt, self.get_parent("shell"), password)

    @contextlib.contextmanager
    def input_allowed(self, allowed: bool) -> Iterator[None]:
        """Let ``input()`` ask the user, or fail."""
        before = builtins.input, getpass.getpass, self._may_ask
        builtins.input, getpass.getpass, self._may_ask = self.raw_input, self.getpass, allowed
        try:
            yield
        finally:
            builtins.input, getpass.getpass, self._may_ask = before


@contextlib.contextmanager
def _waiting(thread: Any) -> Iterator[None]:
    """Pause the event loop of one of ipykernel's threads."""
    waits, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        waits.set()
        go_on.wait()

    thread.io_loop.add_callback(wait)
    waits.wait()
    try:
        yield
    finally:
        go_on.set()


class BaseApp(IPKernelApp):
    """ipykernel's application."""

    @default("session")
    def _session(self) -> PoolSession:
        return PoolSession(parent=self)

    def before_bind(self, socket: zmq.Socket[bytes]) -> None:
        """Prepare a socket that clients connect to."""

    def _bind_socket(self, s: zmq.Socket[bytes], port: int) -> Any:
        self.before_bind(s)
        return super()._bind_socket(s, port)

    def bind(self, socket: zmq.Socket[bytes], port: int) -> None:
        """Bind a socket as the application's others are."""
        self.before_bind(socket)
        between = "-" if self.transport == "ipc" else ":"
        socket.bind(f"{self.transport}://{self.ip}{between}{port}")

    def log_connection_info(self) -> None:
        """Note the ports, but print nothing into the rank's log."""
        handle, self.parent_handle = self.parent_handle, 1  # a child process prints nothing
        super().log_connection_info()
        self.parent_handle = handle


class BaseShell(ZMQInteractiveShell):
    """ipykernel's shell."""

    displayhook: Any

    @property
    def shown_traceback(self) -> list[str]:
        """The traceback of the last error."""
        return self._last_traceback or []

    @property
    def failed_to_display(self) -> bool:
        """Whether that error came as the cell's last value was displayed."""
        return self._last_traceback_during_displayhook

    def forget_error(self) -> None:
        """Begin a cell that has shown no error yet."""
        self._last_traceback, self._last_traceback_during_displayhook = None, False

    def show_error(self, error: BaseException, kind: type, traceback: list[str]) -> bool:
        """Publish an error; return whether the cell's last value was being displayed."""
        raise NotImplementedError

    def _showtraceback(self, etype: type, evalue: BaseException, stb: list[str]) -> None:
        if self.show_error(evalue, etype, stb):
            self._last_traceback_during_displayhook = True
        self._last_traceback = stb

    def _format_exception_for_storage(
        self, exception: BaseException, *_: object, **__: object
    ) -> dict[str, Any]:
        # For the history of errors: what was shown, as rendering takes long.
        name, shown = type(exception).__name__, self._last_traceback or []
        return {"ename": name, "evalue": message_of(exception), "traceback": shown}

    def trim_traceback(self, error: BaseException | None) -> None:
        """Change what is shown of an error's traceback."""

    def _get_exc_info(self, exc_tuple: Any = None) -> Any:
        self.trim_traceback((exc_tuple or sys.exc_info())[1])
        return super()._get_exc_info(exc_tuple)


class _PubSocket:
    """An XPUB socket that looks to ipykernel like one that only sends: we read subscriptions."""

    type = socket_type = zmq.PUB

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def getsockopt(self, option: int) -> Any:
        return zmq.PUB if option == zmq.TYPE else self._socket.getsockopt(option)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


class BasePubThread(IOPubThread):
    """ipykernel's thread that sends outputs.

    Messages of forked workers come by a Unix socket, `pipe`: all users can write to a TCP port.
    """

    def __init__(self, socket: Any, session: Any, pipe: str) -> None:
        super().__init__(_PubSocket(socket), pipe=False)
        self._welcomes = session
        self._owner = os.getpid()
        self._pipe, self._secret = pipe, os.urandom(16)
        incoming = socket.context.socket(zmq.PULL)
        incoming.linger = 0
        incoming.bind(pipe)
        self._from_workers = ZMQStream(incoming, self.io_loop)
        self._from_workers.on_recv(self._pass_on)
        self._subscribers = ZMQStream(socket, self.io_loop)
        self._subscribers.on_recv(self._hear_subscription)

    def _pass_on(self, frames: list[bytes]) -> None:
        if frames[0] == self._secret:
            self.send_multipart(frames[1:])

    def _hear_subscription(self, frames: list[bytes]) -> None:
        for frame in frames:
            topic, more = frame[1:], bool(frame[0])
            self.on_subscription(topic, more)
            if more:
                content = {"subscription": topic.decode(errors="replace")}
                message = self._welcomes.msg("iopub_welcome", content)
                self.socket.send_multipart(self._welcomes.serialize(message, topic or None))

    def on_subscription(self, topic: bytes, more: bool) -> None:
        """Note that a client has subscribed to a topic, or does so no more."""

    def send_multipart(self, message: list[Any], *arguments: Any, **options: Any) -> None:
        """Send a message; a forked worker sends it to the rank."""
        if os.getpid() == self._owner:
            super().send_multipart(message, *arguments, **options)
            return
        with zmq.Context() as context, context.socket(zmq.PUSH) as pipe:  # not the parent's
            pipe.linger = 3000
            pipe.connect(self._pipe)
            pipe.send_multipart([self._secret, *message])
