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
from types import TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.ultratb import FormattedTB
from pygments.formatters.terminal256 import Terminal256Formatter
from pygments.lexer import RegexLexerMeta

_STANDARD_LIBRARY = ("<frozen ", sysconfig.get_path("stdlib"))
_INSTALLED = re.compile(r"/(site|dist)-packages/")
"""Also those of another environment, on which a virtual one is based."""
_FIRST, _LAST = 4, 3
"""How many frames are kept of those that an interrupt has ended in libraries."""
IDLE = 1.0
"""Seconds after its start at which a rank renders a traceback."""


def warm_up() -> None:
    """Render a traceback: ranks inherit the modules, expressions and styles that this takes."""
    _share_lexers()
    _share_styles()
    render_one()


def render_one() -> None:
    """Render a traceback: what it changes of memory that ranks share is copied for this rank.

    Copying takes as long as rendering; at the first Stop, all ranks would do it at once.
    """
    tracebacks = FormattedTB("Context", InteractiveShell.colors.default_value)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        tracebacks.structured_traceback(type(error), error, error.__traceback__)


def _stack_data() -> Any:
    """Return the package that renders tracebacks from IPython 8 on, if it is there."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("stack_data")


def _share_styles() -> None:
    """Let all tracebacks have one style: IPython would make it anew, color by color, for each."""
    if stack_data := _stack_data():
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
    """Let `inspect` know whose code a cell is: it would look through all modules for each frame.

    Parameters
    ----------
    name : str
        The name of the cell's code.
    """
    inspect.modulesbyfile[name] = "__main__"
    with contextlib.suppress(OSError):  # the working directory may be deleted
        inspect.modulesbyfile[os.path.abspath(name)] = "__main__"


def shorten(error: BaseException) -> None:
    """Leave out frames in the middle, of libraries that an interrupt has ended deep inside.

    Stop waits for the traceback. That of `torch.compile` has dozens of frames in large files, and
    took seconds: so long that the rank seemed not to stop.
    """
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace:
        frames.append(trace)
        trace = trace.tb_next
    first = 0
    for number, frame in enumerate(frames, 1):
        file = frame.tb_frame.f_code.co_filename
        if not (file.startswith(_STANDARD_LIBRARY) or _INSTALLED.search(file)):
            first = number  # the user's own code is kept
    left_out = len(frames) - first - _FIRST - _LAST
    if left_out > 1:
        frames[first + _FIRST - 1].tb_next = frames[-_LAST]
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"{left_out} frames of libraries are left out above the last {_LAST}.")
