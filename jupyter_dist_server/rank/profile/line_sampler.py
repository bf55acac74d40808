"""Which line of the cell or script the main thread is at, looked at many times a second.

torch's profiler knows operations of torch. What else takes time, such as `time.sleep` or a
function of the user's, is known from here.
"""

from __future__ import annotations

import sys
import threading
import time
from functools import cache
from types import CodeType, FrameType
from typing import NamedTuple

from ...common.recorded_collectives import is_cell, is_own, place_at
from ..users_code import runs_users_code
from ..waits.evidence_handlers import called_at

_PERIOD = 0.005
"""Seconds from one look to the next."""


class Sample(NamedTuple):
    """What the main thread did from one look to the next."""

    begin: float
    end: float
    place: str
    """Such as ``time.sleep, In[4] line 7``."""


class Sampler:
    """Looks at the main thread from another one."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, CodeType | None, int, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="dist profile", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()

    def samples(self) -> list[Sample]:
        """Return what was seen; a look that came late counts for all the time before it."""
        name = cache(_name)
        found = []
        for before, (moment, code, line, at) in zip(self._seen, self._seen[1:], strict=False):
            if code is not None:
                found.append(Sample(before[0], moment, name(code, line, at)))
        return found

    def _look(self) -> None:
        main = threading.main_thread().ident or 0
        self._seen.append((time.time(), None, 0, 0))
        while not self._ended.wait(_PERIOD):
            frame = _users_frame(sys._current_frames().get(main))
            if frame is None:
                self._seen.append((time.time(), None, 0, 0))
            else:
                self._seen.append((time.time(), frame.f_code, frame.f_lineno, frame.f_lasti))
            del frame  # it holds all variables of the cell's functions


def _users_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a cell's code, or else of a script and its modules."""
    own = None
    while frame is not None and not runs_users_code(frame.f_code):
        if is_cell(frame.f_code.co_filename):
            return frame
        if own is None and is_own(frame.f_code.co_filename):
            own = frame
        frame = frame.f_back
    return own if frame is not None else None


def _name(code: CodeType, line: int, at: int) -> str:
    place = place_at(code.co_filename, line)
    where = f"{place.file} line {place.line}"
    call = called_at(code, at)
    return f"`{call}`, {where}" if call else where
