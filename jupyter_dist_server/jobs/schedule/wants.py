"""Who waits for what, and who has what."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..rules.rules import Rules

HOUR = 3600.0
_OVERDUE = 120.0
"""Seconds after its limit for which an entry is believed to be ending."""
LEAST_ASSUMED = HOUR
"""Seconds that an entry without a limit is assumed to go on, at least."""


@dataclass(frozen=True)
class Want:
    """One entry of a queue: what somebody waits for."""

    id: str
    user: str
    queued: float
    """When it was submitted, or released."""
    gpus: int = 0
    only: frozenset[str] | None = None
    """UUIDs of suitable GPUs; `None` if all are."""
    limit: float | None = None
    """Seconds for which it runs at most."""
    cpus: int = 0
    memory: int = 0
    """Bytes of the machine's memory."""
    share: int | None = None
    """Bytes of each GPU's memory, if it shares GPUs with others."""
    force: bool = False
    """Whether it takes GPUs that are in use without a lease."""
    priority: int = 0
    """Orders the entries of one user."""
    head_since: float = math.inf
    """Since when it is the head: the first of all users' entries that does not fit."""
    name: str = ""
    need: tuple[object, ...] = field(init=False, compare=False)
    """Who takes what: of two with the same, the later one does not fit if the first does not."""
    shape: tuple[object, ...] = field(init=False, compare=False)
    """What decides whether it starts: its need and its limit."""

    def __post_init__(self) -> None:
        takes = (self.gpus, self.only, self.cpus, self.memory, self.share, self.force)
        need = (self.user, *takes)
        object.__setattr__(self, "need", need)
        object.__setattr__(self, "shape", (need, self.limit))


def copied(one: object) -> dict[str, Any]:
    """Return the fields of a `Want` that a job or an entry of a board has, too."""
    names = ("gpus", "limit", "cpus", "memory", "share", "force", "priority")
    return {name: getattr(one, name) for name in names}


@dataclass(frozen=True)
class InUse:
    """What somebody has: a job that runs, a pool, or a lease of which only the holder is known."""

    id: str
    user: str
    gpus: frozenset[str] = frozenset()
    since: float = 0.0
    ends_by: float | None = None
    """When it ends at the latest, if it has a limit."""
    cpus: int = 0
    memory: int = 0
    share: int | None = None
    """Bytes of each GPU's memory, if others may share it."""
    name: str = ""

    def end(self, now: float) -> float:
        """Return when it ends at the latest or, without a limit, is assumed to."""
        if self.ends_by is not None and self.has_known_end(now):
            return max(self.ends_by, now)
        return now + max(now - self.since, LEAST_ASSUMED)

    def has_known_end(self, now: float) -> bool:
        """Tell whether it has a limit, and keeps to it: others can say what they like of theirs."""
        return self.ends_by is not None and now <= self.ends_by + _OVERDUE


@dataclass(frozen=True)
class Machine:
    """What there is to be given."""

    gpus: Mapping[str, int] = field(default_factory=dict)
    """Bytes of memory by UUID, in the order in which GPUs are preferred."""
    blocked: frozenset[str] = frozenset()
    """GPUs that are in use without a lease."""
    cpus: int = 1
    """Cores that our jobs may use."""
    memory: int = 0
    rules: Rules = field(default_factory=Rules)
