"""What a rank uses of ipykernel and IPython that is private there, under public names of ours.

Ranks run with every ipykernel from 6.17.1 on, also with releases that come after us. So each
private name is looked for by itself, and nothing needs one of them: a rank does without, by means
of its own, or loses the feature that `_HOOKS` names. `tests/rank/test_internals.py` says what needs
each name, `tests/rank/test_other_releases.py` renames each in turn.

No other module of ours imports ipykernel.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import getpass
import inspect
import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar, Token
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.error import StdinNotImplementedError
from jupyter_client.session import extract_header
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
"""Methods that ranks override, which all releases had when this was written, and what is lost where
one has another name."""


def losses() -> list[str]:
    """Say what ranks cannot do with this release of ipykernel or IPython."""
    return [
        f"This release of {owner.__module__.partition('.')[0]} has no "
        f"{owner.__name__}.{name}: {lost}."
        for owner, name, lost in _HOOKS
        if not hasattr(owner, name)
    ]


class BaseKernel(IPythonKernel):
    """ipykernel's kernel; what it calls can be overridden."""

    control_msg_types = [*IPythonKernel.control_msg_types, "list_subshell_request"]  # noqa: RUF012
    _execute_sleep = 0.0  # ipykernel's half millisecond covers a race that our client has not

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # ipykernel 7 holds a lock while it deals with a request. Without it, we hold our own.
        lock = getattr(self, "_main_asyncio_lock", None)
        self.between_cells: asyncio.Lock = lock or asyncio.Lock()
        """Held while a cell runs."""
        self._locks_requests = lock is None
        self._may_ask: bool | None = None
        """Whether `input()` may ask the user; `None` while no cell runs that is ours."""

    def start(self) -> None:
        """Begin to serve, while the other threads that receive messages wait.

        ipykernel sets their sockets up in this thread, and ZMQ allows one thread at a time. A
        request that came before all is set up would have no reply.
        """
        threads = (getattr(self, f"{name}_thread", None) for name in ("control", "shell_channel"))
        with contextlib.ExitStack() as stack:
            for thread in threads:
                if thread:
                    stack.enter_context(_waiting(thread))
            super().start()

    async def dispatch_shell(self, *arguments: Any, **options: Any) -> Any:
        """Deal with a request of the shell channel, while no cell runs."""
        on_main = threading.current_thread() is threading.main_thread()
        if not (self._locks_requests and on_main):  # a subshell answers beside the cell
            return await super().dispatch_shell(*arguments, **options)
        async with self.between_cells:
            return await super().dispatch_shell(*arguments, **options)

    def list_subshell_request(self, stream: Any, ident: Any, parent: Content) -> Any:
        """List the subshells; before ipykernel 7, say that there are none.

        Whoever asks is not to wait for a reply that does not come.
        """
        answer = getattr(super(), "list_subshell_request", None)
        if answer:
            return answer(stream, ident, parent)
        refusal = {"status": "error", "ename": "NoSubshells", "evalue": "", "traceback": []}
        session: Any = self.session
        session.send(stream, "list_subshell_reply", refusal, parent, ident)
        return None

    @property
    def status_topic(self) -> bytes:
        """Where the kernel says on iopub whether it is busy."""
        return f"kernel.{self.ident}.status".encode()

    def has_followers(self) -> bool:
        """Whether anybody listens to that; if not, nothing is said."""
        return True

    def _publish_status(self, *arguments: Any, **options: Any) -> None:
        if self.has_followers():
            super()._publish_status(*arguments, **options)

    def ask_user(self, prompt: str, parent: Content, password: bool) -> str:
        """Return what the user answers to ``input()``."""
        raise NotImplementedError

    def raw_input(self, prompt: object = "") -> str:
        """Be ``input()``."""
        if self._may_ask is None:
            answer: str = super().raw_input(prompt)
            return answer
        return self._ask("raw_input", str(prompt), password=False)

    def getpass(self, prompt: str = "", *arguments: Any, **options: Any) -> str:
        """Be ``getpass.getpass()``."""
        if self._may_ask is None:
            answer: str = super().getpass(prompt, *arguments, **options)
            return answer
        return self._ask("getpass", prompt, password=True)

    def _ask(self, name: str, prompt: str, password: bool) -> str:
        if not self._may_ask:
            raise StdinNotImplementedError(
                f"{name} was called, but this frontend does not support input requests."
            )
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
def outside_of_event_loop() -> Iterator[None]:
    """Let a program that runs in a cell, and so in the kernel's event loop, run one of its own."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    asyncio.tasks._leave_task(loop, task)
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio.set_event_loop(loop)
        asyncio._set_running_loop(loop)
        asyncio.tasks._enter_task(loop, task)


@contextlib.contextmanager
def _waiting(thread: Any) -> Iterator[None]:
    """Let the event loop of one of ipykernel's threads do nothing."""
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
        """Prepare a socket that others connect to."""

    def _bind_socket(self, s: zmq.Socket[bytes], port: int) -> Any:
        self.before_bind(s)
        return super()._bind_socket(s, port)

    def bind(self, socket: zmq.Socket[bytes], port: int) -> None:
        """Bind a socket as the application's others are."""
        self.before_bind(socket)
        between = "-" if self.transport == "ipc" else ":"
        socket.bind(f"{self.transport}://{self.ip}{between}{port}")

    def log_connection_info(self) -> None:
        """Note the ports and say nothing: users read a rank's log, and connect to none by hand."""
        handle, self.parent_handle = self.parent_handle, 1  # who has a parent prints nothing
        super().log_connection_info()
        self.parent_handle = handle


class BaseShell(ZMQInteractiveShell):
    """ipykernel's shell."""

    displayhook: Any

    @property
    def shown_traceback(self) -> list[str]:
        """What was shown of the last error."""
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
        """Return what the history of errors keeps: what was shown, as rendering takes long."""
        name, shown = type(exception).__name__, self._last_traceback or []
        return {"ename": name, "evalue": message_of(exception), "traceback": shown}

    def on_error(self, error: BaseException | None) -> None:
        """Change what is shown of an error's traceback."""

    def _get_exc_info(self, exc_tuple: Any = None) -> Any:
        self.on_error((exc_tuple or sys.exc_info())[1])
        return super()._get_exc_info(exc_tuple)


class _PubSocket:
    """An XPUB socket, of which ipykernel sees one that sends only: we read what it receives.

    From 7.2 on, ipykernel reads it too.
    """

    type = socket_type = zmq.PUB

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def getsockopt(self, option: int) -> Any:
        return zmq.PUB if option == zmq.TYPE else self._socket.getsockopt(option)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


class BasePubThread(IOPubThread):
    """ipykernel's thread that sends outputs; messages of forked workers come by a Unix socket.

    Parameters
    ----------
    socket, session
        As ipykernel's.
    pipe : str
        The address of that Unix socket: all users of the machine could write to a TCP port.
    """

    def __init__(self, socket: Any, session: Any, pipe: str) -> None:
        options = {"session": session} if "session" in _parameters(IOPubThread) else {}
        super().__init__(_PubSocket(socket), pipe=False, **options)
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
        """Note that somebody has subscribed to a topic, or does so no more."""

    def send_multipart(self, message: list[Any], *arguments: Any, **options: Any) -> None:
        """Send a message, from a forked worker by way of the rank."""
        if os.getpid() == self._owner:
            super().send_multipart(message, *arguments, **options)
            return
        with zmq.Context() as context, context.socket(zmq.PUSH) as pipe:  # not the parent's
            pipe.linger = 3000
            pipe.connect(self._pipe)
            pipe.send_multipart([self._secret, *message])


def _parameters(function: Callable[..., Any]) -> Collection[str]:
    return inspect.signature(function).parameters


class BaseStream(OutStream):
    """ipykernel's `sys.stdout` or `sys.stderr`, without a thread of its own."""

    def __init__(self, session: Any, pub_thread: Any, name: str, **options: Any) -> None:
        self._header_of_thread: ContextVar[Content] = ContextVar("parent_header")
        self.cell_header: Content = {}
        """The header of the request whose cell the main thread runs."""
        super().__init__(session, pub_thread, name, **options | {"watchfd": False})

    @property
    def parent_header(self) -> Content:
        """The header of the request to which belongs what is printed here and now."""
        return self._header_of_thread.get(self.cell_header)

    @parent_header.setter
    def parent_header(self, header: Content) -> None:
        self._header_of_thread.set(header)
        self.cell_header = header

    def set_thread_parent(self, parent: Content) -> Token[Content]:
        """Note whose request this thread alone deals with."""
        return self._header_of_thread.set(extract_header(parent))

    def reset_thread_parent(self, token: Token[Content]) -> None:
        """Forget it."""
        self._header_of_thread.reset(token)
