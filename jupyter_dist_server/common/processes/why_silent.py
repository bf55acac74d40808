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


class _Thread(NamedTuple):
    """A thread at one moment."""

    state: str
    """One of the letters that ps(1) shows: R, S, D, T, ..."""
    ran: float
    """Seconds for which it ran."""
    waited: float = 0.0
    """Seconds for which it waited for a processor."""
    turns: int = 0
    """How often it got one."""


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
        after = _threads_of(self._process)
        threads = [(self._before[name], after[name]) for name in self._before.keys() & after.keys()]
        if not threads:
            return "unknown"
        seconds = time.monotonic() - self._begun
        ran = sum(now.ran - before.ran for before, now in threads)
        if ran >= seconds / 2:
            return "computing"
        # Threads that wait for the GIL look for it 200 times a second. On a busy machine, each
        # waits a little for a processor then, but hardly runs.
        waited = sum(now.waited - before.waited for before, now in threads)
        if waited >= seconds / 2 and ran >= seconds / 30:
            return "starved"
        if any(_is_starved(before, now, seconds) for before, now in threads):
            return "starved"
        return "driver" if any(one.state == now.state == "D" for one, now in threads) else "stuck"


def _is_starved(before: _Thread, now: _Thread, seconds: float) -> bool:
    if now.waited - before.waited >= seconds / 2:
        return True
    # Linux counts a wait for a processor when it ends. A thread that never gets one shows no wait,
    # but state R at both looks, and no run time.
    is_ready = before.state == now.state == "R" and now.ran - before.ran < seconds / 10
    return is_ready and before.turns == now.turns


def _threads_of(process: ProcessRef) -> dict[str, _Thread]:
    """Return the threads of a process, by their ids."""
    found = {}
    for thread in Path(f"/proc/{process.pid}/task").glob("*"):  # none elsewhere than on Linux
        with contextlib.suppress(OSError):  # it has ended, or the system does not count waits
            fields = (thread / "stat").read_text().rpartition(")")[2].split()
            ran = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            found[thread.name] = _Thread(fields[0], ran)
            ns, waited, turns = map(int, (thread / "schedstat").read_text().split())
            found[thread.name] = _Thread(fields[0], ns / 1e9, waited / 1e9, turns)
    return found
