"""Why a rank died: a sentence, whether memory ran out, and its last lines of stderr."""

from __future__ import annotations

import os
import re
import signal
import time
from itertools import takewhile
from pathlib import Path

from ..common.processes import ProcessRef
from ..common.protocol.agent_messages import RankState
from ..common.protocol.rank_start import Failed
from ..common.protocol.reason import Reason
from .rank_log import CRASH, RankLogs

_LINES = 12
_TAIL = 16384
"""Bytes in which the last lines are looked for."""
_MACHINERY = "IPython/core/interactiveshell.py"
"""Where the stack below the cell begins."""
_KERNEL_LOG = Path("/dev/kmsg")
_CGROUPS = Path("/sys/fs/cgroup")


def exit_words(status: int) -> str:
    """Say how a process ended, from `os.waitpid`'s status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = number in signal.Signals.__members__.values()
        name = signal.Signals(number).name if known else "a real-time signal"
        return f"killed by signal {number} ({name})"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"


class MemoryWatch:
    """Knows whether Linux has killed a process because memory was short.

    The kernel log tells so, to those who may read it; the control group's counter tells everybody,
    but not whom. See https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files.

    Parameters
    ----------
    log : Path
        The kernel log.
    """

    def __init__(self, log: Path = _KERNEL_LOG) -> None:
        self._log = log
        self._killed = _oom_kills()

    def explain(self, pid: int, age: float) -> str:
        """Return words to add to the exit of a killed process, none if memory was not short.

        Parameters
        ----------
        pid : int
            The process.
        age : float
            Seconds since it began; another had its number before.
        """
        before, self._killed = self._killed, _oom_kills()
        for line in _kernel_log(self._log, age):
            if re.search(rf"[Oo]ut of memory: Killed process {pid}\b", line):
                return f", out of memory: {line}"
        if before is not None and self._killed is not None and self._killed > before:
            return (
                ", probably out of memory: the oom_kill counter of its control group has increased"
            )
        return ""


def _kernel_log(path: Path, age: float) -> list[str]:
    """Return the messages of the last `age` seconds that we may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    since = time.clock_gettime(time.CLOCK_MONOTONIC) - age - 1.0
    messages = []
    try:
        while record := os.read(descriptor, 8192):  # each read gives one record
            about, _, message = record.decode(errors="replace").partition(";")
            fields = about.split(",")
            if len(fields) > 2 and int(fields[2]) / 1e6 > since:
                messages.append(message.partition("\n")[0])
    except BlockingIOError:  # that was the last one
        pass
    except BrokenPipeError:  # it is written faster than we read; the counter must do
        pass
    finally:
        os.close(descriptor)
    return messages


def _oom_kills() -> int | None:
    """Return how often the kernel has killed in our control group; `None` if nobody counts."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if controllers in ("", "memory"):  # the second is version 1's
            file = "memory.oom_control" if controllers else "memory.events"
            for folder in (_CGROUPS / controllers / path.lstrip("/"), _CGROUPS / controllers):
                try:
                    found = re.search(r"^oom_kill (\d+)", (folder / file).read_text(), re.M)
                except OSError:  # in a container, only the root of its own groups may be there
                    continue
                if found:
                    return int(found[1])
    return None


class Deaths:
    """Explains how the ranks of one pool have ended, to its agent.

    Parameters
    ----------
    logs : RankLogs
        What they wrote.
    """

    def __init__(self, logs: RankLogs) -> None:
        self._logs = logs
        self._memory = MemoryWatch()

    def explain_failure(self, rank: int, failure: Failed) -> Reason:
        """Return the reason of a pool one of whose ranks did not start."""
        message = f"Rank {rank} did not start: {failure.message}"
        stderr = self._logs.of_process(rank, _LINES)
        return Reason(failure.code, message, failure.hint, rank, stderr)

    def explain(self, rank: RankState, status: int, cause: str | None = None) -> None:
        """Note that a rank has ended, and how.

        Parameters
        ----------
        rank : RankState
            What is known of it.
        status : int
            From `os.waitpid`.
        cause : str or None
            Why, if that is known: its last words are not asked for then.
        """
        rank.state, rank.since = "dead", time.time()
        if not cause:
            cause = exit_words(status)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            if killed and rank.pid and rank.start_ticks:
                age = ProcessRef(rank.pid, rank.start_ticks).age
                cause += self._memory.explain(rank.pid, age)
            rank.stderr = self._last_lines(rank.rank)
            cause += _mismatch(rank.stderr)
        rank.exit = cause

    def _last_lines(self, rank: int) -> list[str]:
        """Return the end of what a rank's cell wrote to stderr, and its stack if it crashed."""
        text = self._logs.stderr(rank, _TAIL, of_cell=True)
        lines = [line for line in text.splitlines() if line.strip()][-_LINES:]
        log = self._logs.of_process(rank, lines=50)
        crashes = [number for number, line in enumerate(log) if line.startswith(CRASH)]
        crash = log[crashes[-1] :] if crashes else []
        return lines + list(takewhile(lambda line: _MACHINERY not in line, crash))[:_LINES]


def _mismatch(lines: list[str]) -> str:
    """Return words for what gloo says as it aborts the rank that gets more than it expects."""
    found = re.search(r"gloo::EnforceNotMet.*?nbytes\. (\d+) vs (\d+)\.", " ".join(lines))
    if not found:
        return ""
    return (
        f", because another rank sent {found[1]} bytes in a collective where this one expected "
        f"{found[2]}: their tensors differ in shape or dtype"
    )
