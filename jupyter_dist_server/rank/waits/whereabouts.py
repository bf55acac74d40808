"""The current line of a rank's cell or script, and the collective that it waits in."""

from __future__ import annotations

import sys
import threading
from types import FrameType

from ...common.protocol.ranks.collectives import DDP
from ...common.protocol.ranks.rank_messages import Whereabouts
from ...common.recorded_collectives import is_own, place_at
from ..torch_internals import (
    BACKWARD,
    DDP_INNER_MODULES,
    DDP_MODULE,
    NO_CALLS,
    WAITING_MODULES,
)
from ..users_code import runs_users_code

_DEBUGGERS = ("bdb", "pdb")
"""Modules that ask the user, and are not `input()`."""


def whereabouts() -> Whereabouts:
    """Tell where the main thread is in the cell that it runs."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    innermost = frame and _module(frame)
    call, backward, asks = None, False, False
    innermost_lines: dict[str, int] = {}  # by file
    while frame is not None:
        caller, name = frame.f_back, frame.f_code.co_name
        backward |= name == BACKWARD
        if _module(frame) in WAITING_MODULES and name not in NO_CALLS:
            call = name
        if _module(frame) == DDP_MODULE and innermost in DDP_INNER_MODULES:
            call = DDP
        asks = (asks or name == "ask_user") and _module(frame) not in _DEBUGGERS
        file = frame.f_code.co_filename
        innermost_lines.setdefault(file, frame.f_lineno)
        if caller is not None and runs_users_code(caller.f_code):
            place = place_at(file, innermost_lines[file])
            return Whereabouts(place.line, call, backward, asks, place.file)
        if caller is not None and caller.f_code.co_name == "run_code":  # IPython runs a cell there
            if not (file.startswith("<") or is_own(file)):
                return Whereabouts(has_failed=True)
            return Whereabouts(frame.f_lineno, call, backward, asks)
        frame = caller
    return Whereabouts()


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
