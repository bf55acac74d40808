"""Why a process does not respond: evidence from the system tells slow from stuck.

Linux counts for each thread how long it ran, and how long it was runnable without a processor
(``/proc/PID/schedstat``, https://docs.kernel.org/scheduler/sched-stats.html).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from ..patience import patience
from .process_ref import ProcessRef, is_stopped

Cause = Literal["ended", "stopped", "starved", "driver", "computing", "stuck", "unknown"]

PHRASES: Mapping[Cause, str] = {
    "ended": "not running any more",
    "stopped": "stopped (SIGSTOP, a debugger)",
    "starved": "waiting for a processor, because the machine is overloaded",
    "driver": "waiting for a driver or a disk",
    "computing": "computing and does not listen",
    "stuck": "stuck",
    "unknown": "stopped, stuck or overloaded",
}
"""What to say of it after "it is"."""
_HOLDS_GIL = "in C code that holds the GIL"
RANK_PHRASES: Mapping[Cause, str] = {
    **PHRASES,
    "computing": _HOLDS_GIL,  # or one of its other threads would respond
    "stuck": _HOLDS_GIL,
    "unknown": f"stopped, {_HOLDS_GIL}, or overloaded",
}
"""The same for a rank."""

_Key = TypeVar("_Key")


async def why_silent(process: ProcessRef | None) -> Cause:
    """Return why a process does not respond, from two looks at it.

    Parameters
    ----------
    process : ProcessRef or None
        `None` if it is not known, or on another node.
    """
    return (await why_each_silent({0: process} if process else {})).get(0, "unknown")


async def why_each_silent(processes: Mapping[_Key, ProcessRef]) -> dict[_Key, Cause]:
    """Return the same for several processes, looked at together."""
    suspects = {key: _Suspect(process) for key, process in processes.items()}
    if suspects:
        await asyncio.sleep(patience.instant)
    return {key: suspect.cause() for key, suspect in suspects.items()}


def why_silent_blocking(process: ProcessRef) -> Cause:
    """Return the same for one process, without an event loop."""
    suspect = _Suspect(process)
    time.sleep(patience.instant)
    return suspect.cause()


class _Threads(NamedTuple):
    """The threads of a process at one moment."""

    states: Mapping[str, str]
    """By thread id, one of the letters that ps(1) shows: R, S, D, T, ..."""
    ran: float
    """Seconds that they ran, together."""
    waited: float
    """Seconds that they waited for a processor, together."""


class _Suspect:
    def __init__(self, process: ProcessRef) -> None:
        self._process = process
        self._begun = time.monotonic()
        self._before = _threads_of(process)

    def cause(self) -> Cause:
        if is_stopped(self._process):
            return "stopped"
        if self._process.find() is None:
            return "ended"
        before, now = self._before, _threads_of(self._process)
        if not before.states or not now.states:
            return "unknown"
        seconds = time.monotonic() - self._begun
        ran, waited = now.ran - before.ran, now.waited - before.waited
        if ran >= seconds / 2:
            return "computing"
        both = [state for thread, state in now.states.items() if before.states.get(thread) == state]
        # Linux counts a wait for a processor when it ends. A thread that never gets one shows no
        # wait, but state R at both looks and almost no run time.
        if waited >= seconds / 2 or ("R" in both and ran < seconds / 10):
            return "starved"
        return "driver" if "D" in both else "stuck"


def _threads_of(process: ProcessRef) -> _Threads:
    states, ran, waited = {}, 0.0, 0.0
    for thread in Path(f"/proc/{process.pid}/task").glob("*"):  # none elsewhere than on Linux
        with contextlib.suppress(OSError):  # it has ended, or the system does not count waits
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            states[thread.name] = fields[0]
            ran += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            waited += int((thread / "schedstat").read_text().split()[1]) / 1e9
    return _Threads(states, ran, waited)
