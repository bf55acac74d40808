"""Why a rank died: a sentence, whether memory ran out, and its last lines of stderr."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass, field
from itertools import takewhile

from ...common.processes.control_groups import MemoryWatch
from ...common.processes.process_ref import OTHER_SIZE
from ...common.protocol.agents.agent_messages import RankState
from ...common.protocol.agents.rank_start import Failed
from ...common.protocol.failure_reason import Reason
from .rank_log import CRASH, RankLogs

_LINES = 12
_TAIL = 16384
"""Bytes that are searched for the last lines."""
_MACHINERY = "IPython/core/interactiveshell.py"
"""Where the stack below the cell begins."""


def exit_words(status: int) -> str:
    """Say how a process ended, from the status of `os.waitpid`."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = number in signal.Signals.__members__.values()
        name = signal.Signals(number).name if known else "a real-time signal"
        return f"killed by signal {number} ({name})"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"


@dataclass(eq=False)
class Deaths:
    """Explains how ranks of one pool have ended; `world_size` counts those of all nodes."""

    _logs: RankLogs
    world_size: int
    _memory: MemoryWatch = field(init=False, default_factory=MemoryWatch)

    def explain_failure(self, rank: int, failure: Failed) -> Reason:
        """Return why a pool did not start: one of its ranks did not."""
        message = f"Rank {rank} did not start: {failure.message}"
        stderr = self._logs.of_process(rank, _LINES)
        return Reason(failure.code, message, failure.hint, rank, stderr)

    def explain(self, rank: RankState, status: int, cause: str | None = None) -> None:
        """Note that a rank has ended, and how; `status` is from `os.waitpid`.

        If the `cause` is known, the rank's last lines are not read.
        """
        rank.state, rank.since = "dead", time.time()
        if not cause:
            cause = exit_words(status)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            cause += self._memory.explain() if killed else ""
            rank.stderr = self._last_lines(rank.rank)
            # gloo does not say which one; of two ranks it can only be the other.
            other = f"rank {1 - rank.rank}" if self.world_size == 2 else "another rank"
            cause += _mismatch(rank.stderr, other)
        rank.exit = cause

    def _last_lines(self, rank: int) -> list[str]:
        """Return the end of what a rank's cell wrote to stderr, and its stack if it crashed."""
        text = self._logs.stderr(rank, _TAIL, of_cell=True)
        lines = [line for line in text.splitlines() if line.strip()][-_LINES:]
        log = self._logs.of_process(rank, lines=50)
        crashes = [number for number, line in enumerate(log) if line.startswith(CRASH)]
        crash = log[crashes[-1] :] if crashes else []
        return lines + list(takewhile(lambda line: _MACHINERY not in line, crash))[:_LINES]


def _mismatch(lines: list[str], other: str) -> str:
    """Return words for gloo's message when it aborts a rank that gets more than it expects."""
    found = re.search(r"gloo::EnforceNotMet.*?nbytes\. (\d+) vs (\d+)\b", " ".join(lines))
    if not found:
        return ""
    sent = f"{other} sent {found[1]} bytes {OTHER_SIZE} {found[2]}"
    return f", because {sent}: their tensors differ in shape or dtype"
