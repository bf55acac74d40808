"""Receiving and running cells: IPython's own machinery, without what a rank has no use for.

A cell that is sent over the shell channel passes through another thread, announces that the kernel
is busy, repeats its input and waits for its output to be flushed: most of the cost of a small
cell. A ``dist_cell_request`` comes to a socket of the main thread. IPython runs it in turn with the
shell channel's cells. Its reply follows its outputs on the iopub channel, or comes back here if
there were none.
"""

from __future__ import annotations

import asyncio
import bdb
import contextlib
import contextvars
import linecache
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Protocol

import zmq
from IPython.core.compilerop import code_name

from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.rank_messages import CellRequest
from ...common.recorded_collectives import is_cell, place_at
from .shell import RankShell, error_content
from .tracebacks import note_cell

NameOfCode = Callable[[str, str, int], str]
Run = Callable[[zmq.Socket[bytes], list[bytes]], Awaitable[None]]
_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)  # enums are slow


class CellChannel:
    """Receives cells from a bound ROUTER, and runs them one after the other."""

    def __init__(self, socket: zmq.Socket[bytes], run: Run) -> None:
        self._socket = socket
        self._run = run
        self._waiting: deque[list[bytes]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._context = contextvars.copy_context()

    def start(self) -> None:
        """Begin to receive, in the running event loop."""
        self._loop = asyncio.get_event_loop()
        self._loop.add_reader(self._socket.FD, self._on_readable)
        self._loop.call_soon(self._on_readable)  # what came before this is not announced again

    def _on_readable(self) -> None:
        # The descriptor reports a change once, so everything must be taken.
        while int(self._socket.get(_EVENTS)) & _READABLE:
            self._waiting.append(self._socket.recv_multipart())
        if self._waiting and self._worker is None:
            self._worker = self._context.run(self._loop.create_task, self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._run(self._socket, self._waiting.popleft())
        finally:
            self._worker = None
            # What a cell sets there is set in the next one: `np.seterr`, `decimal`, your own.
            self._context = contextvars.copy_context()
            # Sending may have swallowed the descriptor's news of another request.
            self._loop.call_soon(self._on_readable)


class DebuggedKernel(Protocol):
    """The kernel, whose debugger may be on."""

    def input_allowed(self, allowed: bool) -> contextlib.AbstractContextManager[None]:
        """Let ``input()`` ask the user, or fail."""

    def map_cell(self, path: str, names: list[tuple[int, str]], lines: int) -> None:
        """Let breakpoints in a file of the editor stop in the code of a cell."""


async def run_cell(kernel: DebuggedKernel, shell: RankShell, asked: CellRequest) -> Content:
    """Run a cell, and return the content of its ``execute_reply``; `input()` works if allowed.

    `InteractiveShell.run_cell` copies all output into a history that grows for ever, and
    `IPythonKernel.do_execute` transforms and inspects each cell twice.
    """
    shell.program_error = None
    shell.forget_error()
    result = None
    try:
        with kernel.input_allowed(asked.allow_stdin):
            result = await _run(shell, asked.code, _named(kernel, asked))
    finally:
        if isinstance(getattr(sys.gettrace(), "__self__", None), bdb.Bdb):
            sys.settrace(None)  # or it would stop in the next cell, if an interrupt cut it off
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
    _show_pages(shell)
    error = result.error_before_exec or result.error_in_exec
    if error is None and shell.failed_to_display:
        error = sys.last_value
    shown = shell.shown_traceback if error else []
    error = error or shell.program_error
    reply = {"status": "error" if error else "ok", "execution_count": shell.execution_count - 1}
    return reply | error_content(type(error).__name__, error, shown) if error else reply


def _named(kernel: DebuggedKernel, asked: CellRequest) -> NameOfCode:
    """Return what names the code of a cell, and of cells within it."""
    path = asked.source
    if path is None:
        return _name_of_code

    names: list[tuple[int, str]] = []

    def name_and_tell(raw_code: str, code: str, number: int) -> str:
        name = _name_of_code(raw_code, code, number)
        at = asked.code.find(raw_code.strip("\n")) if names else 0  # within the cell, as %%time
        if at >= 0:
            names[1:] = [(asked.code[:at].count("\n") + 1, name)] if names else []
            names[:1] = names[:1] or [(1, name)]
            kernel.map_cell(path, names, asked.code.count("\n") + 1)
        return name

    return name_and_tell


async def _run(shell: RankShell, code: str, name_of_code: NameOfCode) -> Any:
    shell.compile.get_code_name = name_of_code  # type: ignore[assignment, method-assign]
    shell.compile.format_code_name = _shown_name  # type: ignore[method-assign]
    cell: dict[str, Any] = {"transformed_cell": code, "preprocessing_exc_tuple": None}
    above = code[: len(code) - len(code.lstrip())].count("\n")
    try:
        # IPython drops blank lines above the code, and the numbers of the lines with them.
        cell["transformed_cell"] = "\n" * above + shell.transform_cell(code)
    except Exception:  # IPython shows it as the cell's error
        cell["preprocessing_exc_tuple"] = sys.exc_info()
    work = shell.run_cell_async(code, store_history=True, **cell)
    if shell.should_run_async(code, **cell):
        task = asyncio.ensure_future(_hold_back_interrupt(work))
        with _interruptible(task):
            result = await task
        if isinstance(result, KeyboardInterrupt):
            raise result
        return result
    try:
        work.send(None)  # nothing in it waits, so it runs to its end
    except StopIteration as end:
        return end.value
    raise RuntimeError("The cell waits for something although it has no await.")


def _name_of_code(raw_code: str, code: str, number: int) -> str:
    """Return the file name of a cell, for warnings and debuggers; the same on all ranks."""
    name = f"<Cell In[{number}]>"
    note_cell(name)
    lines = [line + "\n" for line in code.splitlines()]
    if name in linecache.cache and linecache.getlines(name) != lines:
        # Numbers recur in a cell within a cell (%%time), and after a restart of the notebook's
        # kernel; tracebacks need the older source too.
        return f"<Cell In[{number}] {code_name(code, number)[-13:-1]}>"
    return name


def _shown_name(name: str) -> tuple[str, str] | None:
    """Return how tracebacks name a cell; functions that were sent are from the notebook's cells."""
    return ("Cell", place_at(name, 0).file) if is_cell(name) else None


async def _hold_back_interrupt(work: Coroutine[Any, Any, Any]) -> Any:
    """Return an interrupt that comes between a cell and IPython: raised, it ends the event loop."""
    try:
        return await work
    except KeyboardInterrupt as interrupt:
        return interrupt


@contextlib.contextmanager
def _interruptible(task: asyncio.Task[Any]) -> Iterator[None]:
    """Interrupt a cell that has an `await` like any other, and cancel it while it waits there.

    A task that the cell started is cancelled where it computes: a `KeyboardInterrupt` would end
    the event loop.
    """
    loop, interrupt = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    assert callable(interrupt)
    of_others = asyncio.all_tasks(loop) - {task}

    def on_interrupt(number: int, frame: Any) -> None:
        current = asyncio.current_task()
        if current is task:
            interrupt(number, frame)
            return
        loop.call_soon_threadsafe(task.cancel)  # wakes the loop, as `call_soon` does not
        if current is not None and current not in of_others:
            raise asyncio.CancelledError

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)


def _show_pages(shell: Any) -> None:
    for payload in shell.payload_manager.read_payload():
        if payload.get("source") == "page":
            shell.display_pub.publish(payload["data"])
    shell.payload_manager.clear_payload()
