"""pydevd in this process, and the socket to it: no adapter process, and no port.

pydevd is what debugpy consists of inside a program. It would connect to debugpy's adapter; we give
it one end of a pair of sockets instead. So two of its names are used: `start_client`, which makes
the connection, and `GlobalDebuggerHolder` in a forked worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import itertools
import json
import logging
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.jupyter_messages import Content
from ..waits.stacks import own_threads
from .tensor_preview import show_previews

_LOG = logging.getLogger(__name__)

OnMessage = Callable[[Content], None]
_HEADER = b"Content-Length: "


class PydevdLink:
    """The debugger of this process while it is on; `on_event` is called in a thread of ours."""

    def __init__(self, rules: list[Content], on_event: OnMessage) -> None:
        self._pydevd = _pydevd()
        self._on_event = on_event
        self._waiting: dict[int, OnMessage] = {}
        self._numbers = itertools.count(1)
        self._ours, theirs = socket.socketpair()
        self._writing = threading.Lock()
        for thread in own_threads():
            let_run(thread)
        show_previews()
        connect = self._pydevd.start_client
        self._pydevd.start_client = lambda host, port: theirs
        try:
            self._pydevd.settrace(
                host="rank",
                port=1,
                suspend=False,
                patch_multiprocessing=False,
                wait_for_ready_to_run=False,
            )
        finally:
            self._pydevd.start_client = connect
        # It remembers the breakpoints of code by the number of changes, also of a debugger before.
        self._pydevd.get_global_debugger().mtime = next(_SESSIONS) * 10_000
        reader = threading.Thread(target=self._read, name="debugger", daemon=True)
        let_run(reader)
        reader.start()
        self.ask("initialize", adapterID="jupyter-dist", pathFormat="path")
        self.ask("attach", subProcess=False, justMyCode=False, rules=rules)
        self.ask("configurationDone")
        sys.breakpointhook = self._breakpoint
        _CURRENT.append(self)
        _forget_in_workers()

    def send(self, command: str, arguments: Content, on_response: OnMessage) -> None:
        """Send a request; `on_response` is called in a thread of ours."""
        number = next(self._numbers)
        self._waiting[number] = on_response
        request = {"seq": number, "type": "request", "command": command, "arguments": arguments}
        body = json.dumps(request).encode()
        with self._writing, contextlib.suppress(OSError):  # the debugger has ended
            self._ours.sendall(_HEADER + b"%d\r\n\r\n" % len(body) + body)

    def ask(self, command: str, **arguments: Any) -> Content:
        """Send a request and wait for its response."""
        came, answer = threading.Event(), Content()

        def take(response: Content) -> None:
            answer.update(response)
            came.set()

        self.send(command, arguments, take)
        if not came.wait(patience.node):
            raise DistError("debugger_silent", f"The debugger does not respond to “{command}”.")
        return answer

    def begin_cell(self) -> None:
        """Forget what an earlier cell was stopped for, as Stop leaves the debugger by an error.

        After that, Python does not trace the main thread either; this must be called in it.
        """
        self.send("continue", {"threadId": 1}, lambda _: None)  # all threads
        if sys.gettrace() is None and (debugger := self._pydevd.get_global_debugger()):
            debugger.enable_tracing()

    def close(self) -> None:
        """End the debugger: threads go on, and no code is traced any more."""
        sys.breakpointhook = sys.__breakpointhook__
        _CURRENT.clear()
        with contextlib.suppress(DistError):
            self.ask("disconnect", terminateDebuggee=False)
        self._pydevd.stoptrace()
        self._ours.close()
        # It ends tracing in this thread only.
        ctypes.pythonapi.Py_AddPendingCall(_END_TRACING, None)

    def _breakpoint(self, *arguments: Any, **named: Any) -> None:
        """Be ``breakpoint()``."""
        self._pydevd.settrace(
            suspend=True,
            trace_only_current_thread=True,
            patch_multiprocessing=False,
            stop_at_frame=sys._getframe().f_back,
        )

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._ours.makefile("rb") as incoming:
            while line := incoming.readline():
                if line.startswith(_HEADER):
                    incoming.readline()
                    self._hear(json.loads(incoming.read(int(line[len(_HEADER) :]))))

    def _hear(self, message: Content) -> None:
        hear = self._on_event
        if message["type"] == "response":
            hear = self._waiting.pop(message["request_seq"], lambda _: None)
        try:
            hear(message)
        except Exception:
            _LOG.exception("A message of the debugger could not be handled.")


def _end_tracing(_: object) -> int:
    """End tracing in the main thread, which calls this between two instructions."""
    sys.settrace(None)
    return 0


_END_TRACING = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_end_tracing)


def let_run(thread: threading.Thread) -> None:
    """Let the debugger neither trace nor stop a thread."""
    vars(thread).update(pydev_do_not_trace=True, is_pydev_daemon_thread=True)


def _pydevd() -> Any:
    try:
        importlib.import_module("debugpy.server.api")
        return importlib.import_module("pydevd")
    except ImportError as error:
        raise DistError(
            "debugpy_missing",
            f"debugpy cannot be imported in {sys.executable}: {error}.",
            f'Install it: "{sys.executable}" -m pip install debugpy',
        ) from None


_SESSIONS = itertools.count(1)
_CURRENT: list[PydevdLink] = []
_is_registered: list[bool] = []


def _forget_in_workers() -> None:
    """Let forked workers run without the debugger: nobody would hear where they stop."""
    if not _is_registered:
        _is_registered.append(True)
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    if not _CURRENT:
        return
    constants: Any = importlib.import_module("_pydevd_bundle.pydevd_constants")
    constants.GlobalDebuggerHolder.global_dbg = None
    _CURRENT.clear()
    sys.breakpointhook = sys.__breakpointhook__
    if getattr(constants, "PYDEVD_USE_SYS_MONITORING", False):
        monitoring: Any = importlib.import_module("_pydevd_sys_monitoring.pydevd_sys_monitoring")
        monitoring.stop_monitoring(all_threads=True)
    else:
        importlib.import_module("pydevd_tracing").restore_sys_set_trace_func()
    sys.settrace(None)
    threading.settrace(None)
