"""IPython's shell in a rank: a cell cannot end the rank, and fails if a program in it fails."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from IPython.core.autocall import ZMQExitAutocall
from IPython.core.inputtransformer2 import TransformerManager
from traitlets import Instance, default

from ...common.errors import message_of
from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.cell_messages import ENDS_CELL
from ..ipykernel_internals import BaseShell
from .sigint import ignore_sigint, on_sigint
from .tracebacks import leave_out_ours, module_of, shorten

_LONGEST = 100_000  # maximum characters of an error's message, and of each part of its traceback
_LONGEST_LINE = 200  # the same in sentences about ranks that wait for the failed one
_COLLECTIVES = ("torch.distributed.c10d_logger", "torch.distributed.distributed_c10d")
"""torch's modules that begin collectives. Reading their source takes a rank 0.2 s."""
_MAY_BE_IPYTHONS = re.compile(r"[%?]|!(?!=)|^\s*[,;/]", re.MULTILINE)
"""Without these characters, IPython's own transformers of tokens leave a cell as it is."""
_KEPT_INPUTS = 20


def error_content(kind: str, error: BaseException, traceback: Iterable[str]) -> Content:
    """Return ``{ename, evalue, traceback}``, as in Jupyter's messages."""
    parts = [_bounded(part) for part in traceback]
    return {"ename": kind, "evalue": _bounded(message_of(error)), "traceback": parts}


def in_one_line(reply: Content) -> str:
    """Return the error that ended a cell, or an empty string."""
    if reply["status"] == "ok":
        return ""
    what = f"{reply['ename']}: {reply['evalue']}" if reply["evalue"] else reply["ename"]
    return str(what).partition("\n")[0][:_LONGEST_LINE]


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {len(text) - _LONGEST:,} more characters of this error are cut"


class CellSyntax(TransformerManager):
    """Turns cells into Python, without reading those token by token that are Python already.

    That takes a rank 4 ms for 100 lines, and all ranks of a pool do it at the same moment.
    """

    def __init__(self) -> None:
        super().__init__()
        self._own = list(self.token_transformers)

    def do_token_transforms(self, lines: list[str]) -> list[str]:
        """Transform lines; users may have added transformers."""
        if self.token_transformers == self._own and not _MAY_BE_IPYTHONS.search("".join(lines)):
            return lines
        transformed: list[str] = super().do_token_transforms(lines)
        return transformed


class CellExit(ZMQExitAutocall):
    """``exit`` and ``quit``: they end the cell, or the script that it runs, not the rank."""

    def __call__(self, *code: object) -> NoReturn:
        """Do what Python's own does."""
        raise SystemExit(*code)


class RankShell(BaseShell):
    """The shell of a `RankKernel`."""

    program_error: BaseException | None = None
    """Why a script that the cell ran with ``%run`` failed. IPython shows that, and goes on."""
    input_transformer_manager = Instance(CellSyntax, ())
    _within = 0  # how many cells run within the cell, as ``%%capture`` does

    def __init__(self, **options: Any) -> None:
        self._inputs: deque[str] = deque()
        super().__init__(**options)

    @default("exiter")
    def _default_exiter(self) -> CellExit:
        return CellExit(self)

    def init_prompts(self) -> None:
        """Set no `sys.ps1`: libraries take its presence for an interactive prompt."""

    def init_builtins(self) -> None:
        """Let scripts call ``exit``, which IPython hides from them."""
        super().init_builtins()
        self.builtin_trap.auto_builtins.update(exit=self.exiter, quit=self.exiter)
        warnings.filterwarnings("ignore", "To exit: use 'exit'", module="IPython")

    def forget_old_input(self) -> None:
        """Remove old copies of cells (`_i12`), which slow cells down; `In[12]` has the same."""
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
        """Run a script."""
        with self._noting_failure():
            super().safe_execfile(*arguments, **options)

    def safe_execfile_ipy(self, *arguments: Any, **options: Any) -> None:
        """Run a script with magics or a notebook."""
        with self._noting_failure():
            super().safe_execfile_ipy(*arguments, **options)

    def safe_run_module(self, *arguments: Any, **options: Any) -> None:
        """Run a module."""
        with self._noting_failure():
            super().safe_run_module(*arguments, **options)

    def trim_traceback(self, error: BaseException | None) -> None:
        """Leave out our own frames, and those below an await or the collective that Stop broke."""
        seen: set[int] = set()
        stopped = isinstance(error, KeyboardInterrupt)
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            if error.__traceback__:
                leave_out_ours(error, _COLLECTIVES)
            within = error.__context__ and error.__context__.__traceback__
            if (
                isinstance(error, KeyboardInterrupt)
                and within
                and module_of(within) in _COLLECTIVES
            ):
                error.__suppress_context__ = True  # Stop has ended the connection
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
        """Show an error; a second interrupt meanwhile, from an impatient client, is ignored."""
        on_main = threading.current_thread() is threading.main_thread()
        interrupted = isinstance(sys.exc_info()[1], KeyboardInterrupt)
        if not (interrupted and on_main) or self.call_pdb:
            super().showtraceback(*arguments, **options)
            return
        handler = ignore_sigint()
        try:
            super().showtraceback(*arguments, **options)
        finally:
            on_sigint(handler)

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
