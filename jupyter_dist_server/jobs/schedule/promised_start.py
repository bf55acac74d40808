"""By when the first in line was told to start: where that becomes later, it is said why."""

from __future__ import annotations

import math

from ..store.slurm_formats import write_moment
from .plan import Plan
from .situation import Situation
from .wants import Held

_SLACK = 1.0
"""Seconds by which a start may move without a word."""


class Promise:
    """Remembers by when the head of the queue is to start."""

    def __init__(self) -> None:
        self._id: str | None = None
        self._start = math.inf
        self._told = ""

    def note(self, there: Situation, wanted: Plan) -> str:
        """Return a sentence on what has delayed the start of the head, if anything has."""
        head = wanted.head
        start = head.start if head and head.certain else math.inf
        if head is None or head.id != self._id:
            self._id, self._start, self._told = head.id if head else None, start, ""
        elif start > self._start + _SLACK and self._start < math.inf:
            who = [_name(one) for one in there.held if one.gpus & head.gpus and _end(one) == start]
            until = "has no time limit"
            if start < math.inf:
                until = f"may run until {write_moment(start)}"
            self._told = (
                f" It was to start by {write_moment(self._start)}, "
                f"but {who[0] if who else 'what it waits for'} {until} now."
            )
            self._start = start
        else:
            self._start = min(self._start, start)
        return self._told


def _end(one: Held) -> float:
    return math.inf if one.ends_by is None else one.ends_by


def _name(one: Held) -> str:
    if one.id.isdecimal():
        return f"job {one.id}"
    return f"{one.name or 'a pool'} of {one.user}"
