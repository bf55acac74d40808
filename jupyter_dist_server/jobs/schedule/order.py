"""In which order the machine's users take turns; `plan` decides who of them starts now.

Only what all can read counts, so all who look come to the same order.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping

from .wants import HOUR, InUse, Want

_MOST_WAITED = 24 * HOUR
"""Seconds in line that count: what others say of theirs cannot be checked."""


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
