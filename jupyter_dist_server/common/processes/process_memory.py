"""The memory of a process, in which shared pages count in part."""

from __future__ import annotations

import time

import psutil

_EVERY = 20.0
"""Seconds after which it is read again how much a process shares."""
_LARGEST = 2**30
"""Bytes of the largest process for which that is read: the system checks each of its pages."""


class ProcessMemory:
    """The memory of one process.

    Ranks are forked from a process that has imported torch, and share its pages. A process has a
    share of each of these pages: what Linux calls its proportional set size.
    """

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._not_its_own = 0
        """The part of the resident set that is the others'."""
        self._read = -_EVERY

    def read(self) -> int:
        """Return the bytes that it uses; raises `psutil.NoSuchProcess` if it has ended."""
        resident: int = self._process.memory_info().rss
        now = time.monotonic()
        if resident <= _LARGEST and now - self._read >= _EVERY:
            self._read = now
            self._not_its_own = max(0, resident - self._proportional(resident))
        return max(0, resident - self._not_its_own)

    def _proportional(self, resident: int) -> int:
        try:
            full = self._process.memory_full_info()
        except psutil.AccessDenied:  # of a program with more rights than ours
            return resident
        return int(getattr(full, "pss", resident))  # macOS has no such number
