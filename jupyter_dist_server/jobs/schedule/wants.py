"""Who waits for what, who has what, and in which order the machine's users take turns.

Only what all can read counts, so all who look come to the same order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..rules.rules import Rules

HOUR = 3600.0
_MOST_WAITED = 24 * HOUR
"""Seconds in line that count: what others say of theirs cannot be checked."""
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


def in_order(
    held: Iterable[InUse],
    wants: Iterable[Want],
    now: float,
    past: Mapping[str, float] | None = None,
) -> list[Want]:
    """Bring the entries of all users into one order.

    A user's own entries come by priority, then by age. Of the users' next entries, the head stays
    first: it was told when it starts. After it, the lowest score comes first: GPUs that the user
    holds, plus those that the user has had of late, on average (`past`), plus those of the user's
    own entries ahead, minus hours waited times GPUs requested. So no user can push another back
    forever, and waiting wins in the end, sooner for entries that need many GPUs, which are rarely
    free together.
    """
    queues: dict[str, list[Want]] = {}
    for want in wants:
        queues.setdefault(want.user, []).append(want)
    for queue in queues.values():
        queue.sort(key=lambda want: (-want.priority, want.queued))
    if len(queues) == 1:
        return next(iter(queues.values()))
    has = {user: (past or {}).get(user, 0.0) for user in queues}
    for one in held:
        if one.user in has:
            has[one.user] += len(one.gpus)

    def entry(user: str, place: int) -> tuple[float, float, float, str, int]:
        want = queues[user][place]
        hours = min(max(now - want.queued, 0.0), _MOST_WAITED) / HOUR
        head_since = math.inf if place else want.head_since
        return head_since, has[user] - hours * max(want.gpus, 1), want.queued, user, place

    heads = [entry(user, 0) for user in queues]
    heapq.heapify(heads)
    ordered = []
    while heads:
        *_, user, place = heads[0]
        want = queues[user][place]
        ordered.append(want)
        has[user] += want.gpus
        if place + 1 < len(queues[user]):
            heapq.heapreplace(heads, entry(user, place + 1))
        else:
            heapq.heappop(heads)
    return ordered
