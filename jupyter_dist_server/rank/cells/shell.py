"""IPython's shell in a rank: it cannot be left, and programs that fail in a cell fail the cell."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

from IPython.core.autocall import ZMQExitAutocall
from traitlets import Instance, default

from ...common.protocol.ranks.cell_messages import ENDS_CELL
from ..ignore_sigint import ignore_sigint
from ..ipykernel_internals import BaseShell
from .cell_syntax import CellSyntax
from .error_content import error_content
from .tracebacks import shorten

_RUNNER = f"{__package__}.cell_runner"
"""The module with a function that interrupts a cell, and is no part of it."""
_ASKS = BaseShell.__module__
"""The module with what `input()` is in a cell."""
_COLLECTIVES = ("torch.distributed.c10d_logger", "torch.distributed.distributed_c10d")
"""Modules of torch that begin collectives. To read their source takes a rank 0.2 s."""
_AROUND_TORCH = f"{__package__.rpartition('.')[0]}.group."
"""Begins the names of modules with functions that stand around torch's own."""

_KEPT_INPUTS = 20


def _module(trace: TracebackType) -> str:
    return str(trace.tb_frame.f_globals.get("__name__"))


class CellExit(ZMQExitAutocall):
    """``exit`` and ``quit``: they end the cell, or the script that it runs, not the rank."""

    def __call__(self, *code: object) -> NoReturn:
        """Do what Python's own does."""
        raise SystemExit(*code)


class RankShell(BaseShell):
    """The shell of a `RankKernel`.

    Attributes
    ----------
    program_error : BaseException or None
        Why a script that the cell ran with ``%run`` failed. IPython shows that, and goes on.
    """

    program_error: BaseException | None = None
    input_transformer_manager = Instance(CellSyntax, ())
    _within = 0
    """How many cells run within the cell, as that of ``%%capture`` does."""

    def __init__(self, **options: Any) -> None:
        self._inputs: deque[str] = deque()
        super().__init__(**options)

    @default("exiter")
    def _default_exiter(self) -> CellExit:
        return CellExit(self)

    def init_prompts(self) -> None:
        """Set no `sys.ps1`: nobody types here, and libraries take its presence for a prompt's."""

    def init_builtins(self) -> None:
        """Let scripts call ``exit``, which IPython hides from them."""
        super().init_builtins()
        self.builtin_trap.auto_builtins.update(exit=self.exiter, quit=self.exiter)
        warnings.filterwarnings("ignore", "To exit: use 'exit'", module="IPython")

    def forget_old_input(self) -> None:
        """Keep few of IPython's copies of cells (`_i12`), one a cell: `In[12]` has the same.

        The namespace is looked through at each cell.
        """
        self._inputs.append(f"_i{self.execution_count - 1}")
        if len(self._inputs) > _KEPT_INPUTS:
            self.user_ns.pop(self._inputs.popleft(), None)

    def run_cell(self, *arguments: Any, **options: Any) -> Any:
        """Run a cell within the cell."""
        result = self.displayhook.exec_result
        self._within += 1
        try:
            return super().run_cell(*arguments, **options)
        finally:
            self._within -= 1
            self.displayhook.exec_result = result

    def safe_execfile(self, *arguments: Any, **options: Any) -> None:
        """Run a script, and note whether it failed."""
        with self._noting_failure():
            super().safe_execfile(*arguments, **options)

    def safe_execfile_ipy(self, *arguments: Any, **options: Any) -> None:
        """Run a script with magics or a notebook, and note whether it failed."""
        with self._noting_failure():
            super().safe_execfile_ipy(*arguments, **options)

    def safe_run_module(self, *arguments: Any, **options: Any) -> None:
        """Run a module, and note whether it failed."""
        with self._noting_failure():
            super().safe_run_module(*arguments, **options)

    def on_error(self, error: BaseException | None) -> None:
        """Leave out what is ours, and what is below the collective that Stop broke, or an await."""
        seen: set[int] = set()
        stopped = isinstance(error, KeyboardInterrupt)
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            trace = error.__traceback__
            while trace:
                while (inner := trace.tb_next) and _module(inner).startswith(_AROUND_TORCH):
                    trace.tb_next = inner.tb_next
                trace = trace.tb_next
            if isinstance(error, KeyboardInterrupt):  # our handler has raised it
                trace = error.__traceback__
                while trace and (inner := trace.tb_next):
                    if _module(inner) in (_RUNNER, _ASKS, *_COLLECTIVES):
                        trace.tb_next = None
                    trace = trace.tb_next
                within = error.__context__ and error.__context__.__traceback__
                if within and _module(within) in _COLLECTIVES:
                    error.__suppress_context__ = True  # that a connection was lost is our doing
            if stopped:
                shorten(error)
            error = error.__cause__ or error.__context__

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        before = getattr(sys, "last_value", None)
        yield
        shown: BaseException | None = getattr(sys, "last_value", None)
        if shown is not before:  # IPython keeps there what it showed last
            self.program_error = shown

    def showtraceback(self, *arguments: Any, **options: Any) -> None:
        """Show an error; if it is an interrupt, no second one takes its place meanwhile.

        A client sends a second one if a busy rank is slow to answer. IPython would show its name
        only, as text.
        """
        on_main = threading.current_thread() is threading.main_thread()
        interrupted = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        if not (interrupted and on_main) or self.call_pdb:
            super().showtraceback(*arguments, **options)
            return
        handler = ignore_sigint()
        try:
            super().showtraceback(*arguments, **options)
        finally:
            signal.signal(signal.SIGINT, handler)

    def show_error(self, error: BaseException, kind: type, traceback: list[str]) -> bool:
        """Publish an error, and say whether it is the end of the cell."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # it may be the user's own, and closed
                stream.flush()
        hook = self.displayhook
        in_display = getattr(hook, "msg", None) is not None  # of the cell's last value
        content = error_content(kind.__name__, error, traceback)
        content[ENDS_CELL] = (in_display or self._ends_cell(error)) and not self.call_pdb
        topic = hook.topic and hook.topic.replace(b"execute_result", b"error")
        hook.session.send(hook.pub_socket, "error", content, hook.parent_header, ident=topic)
        return in_display

    def _ends_cell(self, error: BaseException) -> bool:
        result = self.displayhook.exec_result
        if self._within or result is None:  # without one, the cell was not begun
            return not self._within
        return error in (result.error_before_exec, result.error_in_exec)
