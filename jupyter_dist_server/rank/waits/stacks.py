"""The stacks of a rank's Python threads, and where its main thread is in its cell."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType

from ...common.protocol.ranks.collectives import (
    BACKWARD,
    DDP,
    HALTS,
    NO_CALLS,
    PYDEVD,
    WAITING_MODULES,
)
from ...common.protocol.ranks.rank_messages import Activity, StackReply, StackRequest, Whereabouts
from ...common.recorded_collectives import is_own, place_at
from ..request_handlers import Asked, hears
from ..torch_internals import DDP_INNER_MODULES, DDP_MODULE
from ..users_code import runs_users_code

_OUR_THREADS = ("ipykernel.", f"{__package__.partition('.')[0]}.", "zmq.utils.garbage.")
"""Modules that start a rank's own threads, which serve its sockets and take in its output."""
_RUNS_CELLS = "run_code"
"""IPython's function that runs a cell; the frames below it are the same in every rank."""
_DEBUGGERS = ("bdb", "pdb")  # modules that ask the user, but not by `input()`
_OUTER, _INNER = 20, 80
"""How many outermost and innermost calls of a deep stack are shown."""

Place = tuple[FrameType, int]
"""A frame, and the line that it was at: the thread may go on meanwhile."""


class StackHandlers:
    """What `RankKernel` answers about its threads."""

    _state: Activity

    @hears(StackRequest)
    def dist_stack_request(self, asked: Asked[StackRequest]) -> None:
        """Answer on the control thread, whatever the main thread does."""
        asked.reply(StackReply(stacks(busy=self._state == "busy")))


def stacks(busy: bool) -> str:
    """Return the stacks of all Python threads but this one, the main thread's first."""
    frames = sys._current_frames()
    # Our own frame would hold itself, and with it what all others hold: a returned cell's tensors.
    del frames[threading.get_ident()]
    places = {ident: list(_walk(frame)) for ident, frame in frames.items()}
    threads = {thread.ident: thread for thread in threading.enumerate()}
    main = threading.main_thread().ident or 0
    told = [_tell('Thread "MainThread", which runs cells', of_the_cell(places.pop(main)), busy)]
    left_out = [threading.current_thread().name]
    for ident, whole in sorted(places.items()):
        stack, thread = _of_the_thread(whole), threads.get(ident)
        name = thread.name if thread else f"{ident:#x}, not started by Python"
        if thread and _is_ours(stack):
            left_out.append(name)
        else:
            told.append(_tell(f'Thread "{name}"' if thread else f"Thread {name}", stack, True))
    ours = ", ".join(sorted(left_out))
    told.append(f"Omitted: the rank's own threads ({ours}), and the frames below the cell.\n")
    return "\n".join(told)


def own_threads() -> list[threading.Thread]:
    """Return the rank's own threads, which are not the user's, without this one."""
    frames = sys._current_frames()
    del frames[threading.get_ident()]
    return [
        thread
        for thread in threading.enumerate()
        if thread is not threading.main_thread()
        and (frame := frames.get(thread.ident or 0))
        and _is_ours(_of_the_thread(list(_walk(frame))))
    ]


def _walk(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def main_thread() -> Iterator[Place]:
    """Yield the main thread's frames, the innermost first."""
    return _walk(sys._current_frames().get(threading.main_thread().ident or 0))


def of_the_cell(stack: list[Place]) -> list[Place]:
    """Return the main thread's frames of the cell, or of the script or function that it runs."""
    codes = [frame.f_code for frame, _ in stack]
    below = [place for place, code in enumerate(codes) if code.co_name == _RUNS_CELLS]
    below = [place for place, code in enumerate(codes) if runs_users_code(code)][:1] or below[-1:]
    return stack[: below[0]] if below else []


def _of_the_thread(stack: list[Place]) -> list[Place]:
    """Return a stack without the functions of `threading` that every thread begins with."""
    first = len(stack)
    while first and _module(stack[first - 1][0]) == "threading":
        first -= 1
    return stack[:first] or stack


def _is_ours(stack: list[Place]) -> bool:
    """Tell by the function that a thread began with."""
    return f"{_module(stack[-1][0])}.".startswith(_OUR_THREADS)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _tell(title: str, stack: list[Place], busy: bool) -> str:
    if not stack:
        where = "in an `await` of its cell, or beginning or ending it" if busy else "idle"
        return f"{title}:\n  {where}\n"
    calls = stack[::-1]
    left_out = len(calls) - _OUTER - _INNER
    if left_out > 0:  # a runaway recursion's would take seconds
        note = f"  … {left_out} frames omitted …\n"
        lines = [*_format(calls[:_OUTER]), note, *_format(calls[-_INNER:])]
    else:
        lines = _format(calls)
    return f"{title} (most recent call last):\n{''.join(lines)}"


def _format(calls: list[Place]) -> list[str]:
    # Lines of cells are found too: IPython keeps them where files' lines are kept.
    return traceback.StackSummary.extract(iter(calls)).format()


def whereabouts() -> Whereabouts:
    """Return the main thread's line in its cell or script, and the collective that it is in."""
    innermost, call, backward, asks, debugged = "", None, False, False, False
    innermost_lines: dict[str, int] = {}  # by file
    for frame, line in main_thread():
        caller, name, module = frame.f_back, frame.f_code.co_name, _module(frame)
        if module.partition(".")[0] in PYDEVD:
            debugged |= name == HALTS
            continue
        innermost = innermost or module
        backward |= name == BACKWARD
        if module in WAITING_MODULES and name not in NO_CALLS:
            call = name
        if module == DDP_MODULE and innermost in DDP_INNER_MODULES:
            call = DDP
        asks = (asks or name == "ask_user") and module not in _DEBUGGERS
        file = frame.f_code.co_filename
        innermost_lines.setdefault(file, line)
        if caller is not None and runs_users_code(caller.f_code):
            place = place_at(file, innermost_lines[file])
            return Whereabouts(place.line, call, backward, asks, place.file, debugged=debugged)
        if caller is not None and caller.f_code.co_name == _RUNS_CELLS:
            if not (file.startswith("<") or is_own(file)):
                return Whereabouts(has_failed=True)
            line = innermost_lines[file] if debugged else line
            return Whereabouts(line, call, backward, asks, debugged=debugged)
    return Whereabouts()
