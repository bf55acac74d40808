"""Where every Python thread of a rank is, as a traceback reads; told by the control thread."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType

from ...common.protocol.ranks.rank_messages import Activity, StackReply, StackRequest
from ..request_handlers import Asked, hears
from ..users_code import runs_users_code

_OUR_THREADS = ("ipykernel.", f"{__package__.partition('.')[0]}.", "zmq.utils.garbage.")
"""What starts a rank's own threads: those that serve its sockets and take in its output."""
_RUNS_CELLS = "run_code"
"""IPython's function that runs a cell; what is below it is the same in every rank."""

_OUTER, _INNER = 20, 80
"""How many calls of a deep stack are shown: the first, and the last."""

Place = tuple[FrameType, int]
"""A frame, and the line that it was at: it may go on while others are looked at."""


class StackHandlers:
    """What `RankKernel` answers about its threads."""

    _state: Activity

    @hears(StackRequest)
    def dist_stack_request(self, asked: Asked[StackRequest]) -> None:
        """Tell where all threads are, on the control thread: nothing is waited for."""
        asked.reply(StackReply(stacks(busy=self._state == "busy")))


def stacks(busy: bool) -> str:
    """Return the stacks of all Python threads but this one, the main thread's first.

    Parameters
    ----------
    busy : bool
        Whether a cell runs.
    """
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


def _walk(frame: FrameType | None) -> Iterator[Place]:
    """Yield a stack's frames, the innermost first."""
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def of_the_cell(stack: list[Place]) -> list[Place]:
    """Return the part of the main thread's stack that belongs to the cell; none between cells.

    It begins in a script, or in a function that was sent, as the cell that runs one is ours.
    """
    codes = [frame.f_code for frame, _ in stack]
    below = [place for place, code in enumerate(codes) if code.co_name == _RUNS_CELLS]
    below = [place for place, code in enumerate(codes) if runs_users_code(code)][:1] or below[-1:]
    return stack[: below[0]] if below else []


def _of_the_thread(stack: list[Place]) -> list[Place]:
    """Return a stack without the functions of `threading` that every thread begins with."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in stack]
    while modules and modules[-1] == "threading":
        modules.pop()
    return stack[: len(modules)] or stack


def _is_ours(stack: list[Place]) -> bool:
    """Tell by the function that a thread began with."""
    first: str = stack[-1][0].f_globals.get("__name__", "")
    return f"{first}.".startswith(_OUR_THREADS)


def _tell(title: str, stack: list[Place], busy: bool) -> str:
    if not stack:
        where = "in an `await` of its cell, or beginning or ending it" if busy else "idle"
        return f"{title}:\n  {where}\n"
    calls = stack[::-1]
    left_out = len(calls) - _OUTER - _INNER
    if left_out > 0:  # a runaway recursion's would take seconds to tell
        note = f"  … {left_out} frames omitted …\n"
        lines = [*_format(calls[:_OUTER]), note, *_format(calls[-_INNER:])]
    else:
        lines = _format(calls)
    return f"{title} (most recent call last):\n{''.join(lines)}"


def _format(calls: list[Place]) -> list[str]:
    # Lines of cells are found too: IPython keeps them where files' lines are kept.
    return traceback.StackSummary.extract(iter(calls)).format()
