"""What a rank uses of ipykernel and IPython that is private there, under public names of ours.

No other module of ours imports ipykernel. `tests/rank/test_internals.py` says what needs each name.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.ipkernel import IPythonKernel
from ipykernel.jsonutil import json_clean as json_clean
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from jupyter_client.session import extract_header
from traitlets import default
from zmq.eventloop.zmqstream import ZMQStream

from ..common.errors import message_of
from ..common.protocol.jupyter_messages import Content
from ..common.protocol.pool_session import PoolSession


class BaseKernel(IPythonKernel):
    """ipykernel's kernel; what it calls can be overridden."""

    _execute_sleep = 0.0  # ipykernel's half millisecond covers a race that our client has not

    def start(self) -> None:
        """Begin to serve, while the other threads that receive messages wait.

        ipykernel sets their sockets up in this thread, and ZMQ allows one thread at a time. A
        request that came before all is set up would have no reply.
        """
        with _waiting(self.control_thread), _waiting(self.shell_channel_thread):
            super().start()

    @property
    def between_cells(self) -> asyncio.Lock:
        """Held while a cell runs."""
        return self._main_asyncio_lock

    @property
    def status_topic(self) -> bytes:
        """Where the kernel says on iopub whether it is busy."""
        topic: bytes = self._topic("status")
        return topic

    def has_followers(self) -> bool:
        """Whether anybody listens to that; if not, nothing is said."""
        return True

    def _publish_status(self, status: str, channel: str, parent: Any = None) -> None:
        if self.has_followers():
            super()._publish_status(status, channel, parent)

    def ask_user(self, prompt: str, parent: Content, password: bool) -> str | None:
        """Return what the user answers to ``input()``; `None` leaves that to ipykernel."""
        return None

    def _input_request(
        self, prompt: str, ident: Any, parent: Content, password: bool = False
    ) -> str:
        answer = self.ask_user(prompt, parent, password)
        if answer is None:
            answer = super()._input_request(prompt, ident, parent, password)
        return answer

    @contextlib.contextmanager
    def input_allowed(self, allowed: bool) -> Iterator[None]:
        """Let ``input()`` ask the user, or fail."""
        self._forward_input(allowed)
        try:
            yield
        finally:
            self._restore_input()


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

    def bind(self, socket: zmq.Socket[bytes], port: int) -> int:
        """Bind a socket as the application's others are; return its port."""
        bound: int = self._bind_socket(socket, port)
        return bound

    def note_ports(self) -> None:
        """Remember the ports, for the kernel."""
        names = ("shell", "iopub", "stdin", "hb", "control")
        self._ports = {name: getattr(self, f"{name}_port") for name in names}


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
        self._pipe = pipe
        super().__init__(socket, pipe=True, session=session)

    def _setup_pipe_in(self) -> None:
        self._pipe_uuid = os.urandom(16)
        pipe = self.socket.context.socket(zmq.PULL)
        pipe.linger = 0
        pipe.bind(self._pipe)
        self._pipe_in = ZMQStream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def _setup_pipe_out(self) -> tuple[zmq.Context[Any], zmq.Socket[Any]]:
        context: zmq.Context[Any] = zmq.Context()  # a forked process cannot use its parent's
        pipe = context.socket(zmq.PUSH)
        pipe.linger = 3000
        pipe.connect(self._pipe)
        return context, pipe

    def on_subscription(self, topic: bytes, more: bool) -> None:
        """Note that somebody has subscribed to a topic, or does so no more."""

    def _handle_subscription(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.on_subscription(frame[1:], bool(frame[0]))
        super()._handle_subscription(frames)

    def enqueue(self, call: Callable[[], Any]) -> None:
        """Have something called in the thread, once it is woken."""
        self._events.append(call)

    def wake(self) -> None:
        """Wake the thread."""
        self._event_pipe.send(b"")

    def on_woken(self) -> None:
        """Note that the thread is awake, and has not called anything yet."""

    def _handle_event(self, frames: list[bytes]) -> None:
        self.on_woken()
        super()._handle_event(frames)


class BaseStream(OutStream):
    """ipykernel's `sys.stdout` or `sys.stderr`, without a thread of its own."""

    def __init__(self, session: Any, pub_thread: Any, name: str, **options: Any) -> None:
        super().__init__(session, pub_thread, name, **options | {"watchfd": False})

    @property
    def cell_header(self) -> Content:
        """The header of the request whose cell the main thread runs."""
        header: Content = self._parent_header_global
        return header

    def set_parent_of_thread(self, parent: Content) -> None:
        """Note whose request this thread alone deals with."""
        self._parent_header.set(extract_header(parent))
