"""Tracebacks at a low cost: the ranks of a pool render theirs at the same moment.

Otherwise the first one in a process takes 0.1 to 0.4 s, and each frame 10 ms and more.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import sysconfig
from functools import cache
from itertools import zip_longest
from types import TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.ultratb import FormattedTB
from pygments.formatters.terminal256 import Terminal256Formatter
from pygments.lexer import RegexLexerMeta

_STANDARD_LIBRARY = ("<frozen ", sysconfig.get_path("stdlib"))
_INSTALLED = re.compile(r"/(site|dist)-packages/")
"""Also in another environment, on which a virtual one is based."""
_FIRST, _LAST = 4, 3
"""How many frames of libraries are kept in the traceback of an interrupt."""
_OURS = f"{__package__.partition('.')[0]}."


def warm_up() -> None:
    """Render a traceback: ranks inherit the imported modules, compiled expressions and styles."""
    _share_lexers()
    _share_styles()
    render_one()


def render_one() -> None:
    """Render a traceback, to copy the memory pages that it changes before they are needed.

    Copying takes as long as rendering; at the first Stop, all ranks would do it at once.
    """
    tracebacks = FormattedTB("Context", InteractiveShell.colors.default_value)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        tracebacks.structured_traceback(type(error), error, error.__traceback__)


def _share_styles() -> None:
    """Let all tracebacks share one style: IPython makes it anew, color by color, for each."""
    with contextlib.suppress(ImportError):  # IPython uses it from release 8 on
        stack_data = importlib.import_module("stack_data")
        made_anew = stack_data.style_with_executing_node
        vars(stack_data)["style_with_executing_node"] = cache(made_anew)
    make = Terminal256Formatter.__init__
    made: dict[tuple[type, Any], dict[str, Any]] = {}

    def share(formatter: Any, **options: Any) -> None:
        key = type(formatter), options.get("style")
        if options.keys() == {"style"} and key in made:
            vars(formatter).update(made[key])
            return
        make(formatter, **options)
        if options.keys() == {"style"}:
            made[key] = dict(vars(formatter))

    Terminal256Formatter.__init__ = share


def _share_lexers() -> None:
    """Let a lexer without expressions of its own use those of its parent.

    `stack_data` makes a class of lexer for each frame, and pygments compiles all its expressions.
    """
    process = RegexLexerMeta.process_tokendef

    def share(lexer: Any, name: str, tokens: Any = None) -> Any:
        parent = lexer.__mro__[1]
        if {"tokens", "flags"} & vars(lexer).keys() or "_tokens" not in vars(parent):
            return process(lexer, name, tokens)
        return parent._tokens

    RegexLexerMeta.process_tokendef = share


def note_cell(name: str) -> None:
    """Let `inspect` know whose code a cell is: it would search all modules for each frame."""
    inspect.modulesbyfile[name] = "__main__"
    with contextlib.suppress(OSError):  # the working directory may be deleted
        inspect.modulesbyfile[os.path.abspath(name)] = "__main__"


def leave_out_ours(error: BaseException, ends: tuple[str, ...]) -> None:
    """Leave out frames of ours; after an interrupt, all that the last of them calls, too.

    An interrupt's traceback also ends before the modules `ends`.
    """
    first, *others = _frames(error)
    users = max((n for n, frame in enumerate(others) if _is_users(frame)), default=-1)
    kept = [first]
    for number, frame in enumerate(others):
        name, is_inner = module_of(frame), isinstance(error, KeyboardInterrupt) and number > users
        if is_inner and name.startswith((_OURS, *ends)):
            break
        if not name.startswith(_OURS):
            kept.append(frame)
    for frame, inner in zip_longest(kept, kept[1:]):
        frame.tb_next = inner


def shorten(error: BaseException) -> None:
    """Leave out frames of libraries in the middle of an interrupt's traceback.

    Stop waits for the traceback. That of `torch.compile` has dozens of frames in large files, and
    took seconds to render.
    """
    frames = _frames(error)
    first = max((n for n, frame in enumerate(frames, 1) if _is_users(frame)), default=0)
    left_out = len(frames) - first - _FIRST - _LAST
    if left_out > 1:
        frames[first + _FIRST - 1].tb_next = frames[-_LAST]
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"{left_out} frames of libraries are left out above the last {_LAST}.")


def _frames(error: BaseException) -> list[TracebackType]:
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace:
        frames.append(trace)
        trace = trace.tb_next
    return frames


def _is_users(frame: TracebackType) -> bool:
    # Code of Cython has the path of its source, and that of its module is among its globals.
    files = frame.tb_frame.f_code.co_filename, str(frame.tb_frame.f_globals.get("__file__"))
    is_library = any(
        file.startswith(_STANDARD_LIBRARY) or _INSTALLED.search(file) for file in files
    )
    return not (is_library or module_of(frame).startswith(_OURS))


def module_of(frame: TracebackType) -> str:
    """Return the name of the module whose code a frame runs."""
    return str(frame.tb_frame.f_globals.get("__name__"))
