"""Where the user's code begins in a cell of ours: a script, or a function that was sent."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, TracebackType
from typing import Any


def run_code(code: CodeType, namespace: dict[str, Any]) -> None:
    """Run a script."""
    exec(code, namespace)


def call(function: Callable[..., Any], arguments: Any, named: Any) -> Any:
    """Call a function."""
    return function(*arguments, **named)


def runs_users_code(code: CodeType) -> bool:
    """Tell whether this is the code of `run_code` or `call`."""
    return code.co_filename == __file__


@contextlib.contextmanager
def without_frames_of_ours(shell: Any) -> Iterator[None]:
    """Show a failure from the first line of the user's code on."""
    try:
        yield
    except SyntaxError as error:  # IPython would show it with the whole stack
        tb = _from_users_code(error.__traceback__)
        lines = shell.SyntaxTB.structured_traceback(type(error), error, traceback.extract_tb(tb))
        kind = type(type(error).__name__, (Exception,), {"_render_traceback_": lambda _: lines})
        raise kind(str(error)) from None
    except BaseException as error:
        if not hasattr(type(error), "_render_traceback_"):
            shell.trim_traceback(error)
            tb = _from_users_code(error.__traceback__)
            lines = shell.InteractiveTB.structured_traceback(type(error), error, tb, tb_offset=0)
            error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
        raise


def _from_users_code(tb: TracebackType | None) -> TracebackType | None:
    ours = (f"{__package__}.", contextlib.__name__)
    while tb is not None and str(tb.tb_frame.f_globals.get("__name__")).startswith(ours):
        tb = tb.tb_next
    return tb
