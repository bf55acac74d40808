"""Why a process does not respond: evidence from the system tells slow from stuck.

Linux counts for each thread how long it ran, and how long it was runnable without a processor
(``/proc/PID/schedstat``, https://docs.kernel.org/scheduler/sched-stats.html).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from ..patience import patience
from .process_ref import ProcessRef, is_stopped

Cause = Literal["ended", "stopped", "starved", "driver", "computing", "waiting", "unknown"]

PHRASES: Mapping[Cause, str] = {
    "ended": "not running any more",
    "stopped": "stopped (SIGSTOP, a debugger)",
    "starved": "waiting for a processor, because the machine is overloaded",
    "driver": "waiting for a driver or a disk",
    "computing": "computing and does not listen",
    "waiting": "stuck",
    "unknown": "stopped, stuck or overloaded",
}
"""What to say of it after "it is"."""
_HOLDS_GIL = "in C code that holds the GIL"
RANK_PHRASES: Mapping[Cause, str] = {
    **PHRASES,
    "computing": _HOLDS_GIL,  # or one of its other threads would respond
    "waiting": _HOLDS_GIL,
    "unknown": f"stopped, {_HOLDS_GIL}, or overloaded",
}
"""The same for a rank."""

_Key = TypeVar("_Key")


class _Look(NamedTuple):
    """The threads of a process at one moment."""

    states: Mapping[str, str]
    """By thread id, one of the letters that ps(1) shows: R, S, D, T, ..."""
    ran: float
    """Seconds that they ran, together."""
    waited: float
    """Seconds that they waited for a processor, together."""


async def why_silent(process: ProcessRef | None) -> Cause:
    """Return why a process does not respond, from two looks at it.

    Parameters
    ----------
    process : ProcessRef or None
        `None` if it is not known, or on another node.
    """
    return (await why_each_silent({0: process} if process else {})).get(0, "unknown")


async def why_each_silent(processes: Mapping[_Key, ProcessRef]) -> dict[_Key, Cause]:
    """Return the same for several processes, at the same time."""
    before = {key: _look_at(process) for key, process in processes.items()}
    begun = time.monotonic()
    await asyncio.sleep(patience.instant)
    seconds = time.monotonic() - begun
    return {
        key: _compare(process, before[key], _look_at(process), seconds)
        for key, process in processes.items()
    }


def _look_at(process: ProcessRef) -> _Look | None:
    if sys.platform != "linux":
        return None
    states, ran, waited = {}, 0, 0
    for thread in Path(f"/proc/{process.pid}/task").glob("*"):
        with contextlib.suppress(OSError):  # it has ended
            stat = (thread / "stat").read_text()
            states[thread.name] = stat.rpartition(")")[2].split()[0]
            on_processor, in_queue, _ = (thread / "schedstat").read_text().split()
            ran += int(on_processor)
            waited += int(in_queue)
    return _Look(states, ran / 1e9, waited / 1e9)


def _compare(process: ProcessRef, before: _Look | None, now: _Look | None, seconds: float) -> Cause:
    if is_stopped(process):
        return "stopped"
    if process.find() is None:
        return "ended"
    if not before or not now or not now.states:
        return "unknown"
    ran = now.ran - before.ran
    both = [state for thread, state in now.states.items() if before.states.get(thread) == state]
    if ran >= seconds / 2:
        return "computing"
    # What a thread waits is counted when it gets a processor: one that never does only shows R.
    if now.waited - before.waited >= seconds / 2 or ("R" in both and ran < seconds / 10):
        return "starved"
    return "driver" if "D" in both else "waiting"
