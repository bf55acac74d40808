"""Running one cell in a rank: IPython's own machinery, without what a rank has no use for.

`InteractiveShell.run_cell` copies all that is printed into a history of outputs that grows for
ever, and `IPythonKernel.do_execute` transforms and inspects each cell twice.
"""

from __future__ import annotations

import asyncio
import bdb
import contextlib
import linecache
import signal
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

from IPython.core.compilerop import code_name

from ...common.protocol.jupyter_messages import Content
from ...common.recorded_collectives import is_cell, place_at
from ..ipykernel_internals import BaseKernel
from .error_content import error_content
from .shell import RankShell
from .tracebacks import note_cell


async def run_cell(kernel: BaseKernel, shell: RankShell, code: str, allow_stdin: bool) -> Content:
    """Run a cell, and return the content of its ``execute_reply``.

    Parameters
    ----------
    kernel : BaseKernel
        Lets it ask for input.
    shell : RankShell
        Runs it.
    code : str
        The cell.
    allow_stdin : bool
        Whether ``input()`` may ask.
    """
    shell.program_error = None
    shell.forget_error()
    result = None
    try:
        with kernel.input_allowed(allow_stdin):
            result = await _run(shell, code)
    finally:
        if isinstance(getattr(sys.gettrace(), "__self__", None), bdb.Bdb):
            sys.settrace(None)  # or it would stop in the next cell, if an interrupt cut it off
        shell.events.trigger("post_execute")
        shell.events.trigger("post_run_cell", result)
    _show_pages(shell)
    error = result.error_before_exec or result.error_in_exec
    if error is None and shell.failed_to_display:
        error = sys.last_value
    shown = [] if error is None else shell.shown_traceback
    error = error or shell.program_error
    reply = {"status": "error" if error else "ok", "execution_count": shell.execution_count - 1}
    if error:
        reply |= error_content(type(error).__name__, error, shown or [])
    return reply


async def _run(shell: RankShell, code: str) -> Any:
    shell.compile.get_code_name = _name_of_code  # type: ignore[assignment, method-assign]
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
    """Return the file name of a cell, the same on all ranks, as warnings and threads say it.

    A debugger would take one without the brackets for a file in the working directory.
    """
    name = f"<Cell In[{number}]>"
    note_cell(name)
    lines = [line + "\n" for line in code.splitlines()]
    if name in linecache.cache and linecache.getlines(name) != lines:
        # Numbers come again in a cell within a cell (%%time), or if the notebook's kernel was
        # restarted; what was defined under this name is still to be shown by its own source.
        return f"<Cell In[{number}] {code_name(code, number)[-13:-1]}>"
    return name


def _shown_name(name: str) -> tuple[str, str] | None:
    """Return how tracebacks name a cell; it may be the notebook's, of which a function was sent."""
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

    A task of the cell's that computes meanwhile is cancelled where it is: a `KeyboardInterrupt`
    would end the event loop.
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
    """Show what a pager would: the help that ``object?`` asks for."""
    for payload in shell.payload_manager.read_payload():
        if payload.get("source") == "page":
            shell.display_pub.publish(payload["data"])
    shell.payload_manager.clear_payload()
