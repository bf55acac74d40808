"""Limits of users and groups on what runs at once, as the policy has them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ...common.policy import Policy
from ...common.units import format_gpus
from .wants import InUse

_OF_USER = "QOSMaxGRESPerUser", "AssocMaxJobsLimit"
_OF_GROUP = "AssocGrpGRES", "AssocGrpJobsLimit"
"""Slurm's words for too many GPUs and too many jobs."""


class _Limit(NamedTuple):
    whose: str
    gpus: float
    jobs: float
    reasons: tuple[str, str]


class Running:
    """Counts what users and groups have, as far as they have limits."""

    def __init__(self, policy: Policy, held: Iterable[InUse] = ()) -> None:
        self._policy = policy
        self._limits: dict[str, list[_Limit]] = {}
        self._gpus: dict[str, set[str]] = {}
        """UUIDs: a GPU that several things share counts once."""
        self._jobs = Counter[str]()
        for one in held:
            self.add(one)

    def add(self, one: InUse) -> None:
        """Count something that runs."""
        for limit in self._limits_of(one.user):
            self._gpus.setdefault(limit.whose, set()).update(one.gpus)
            self._jobs[limit.whose] += 1

    def exceeded(self, user: str, gpus: int) -> tuple[str, str] | None:
        """Return which limit another thing with so many GPUs would exceed, and a sentence on it."""
        for whose, most_gpus, most_jobs, (too_many_gpus, too_many_jobs) in self._limits_of(user):
            has = len(self._gpus.get(whose, ()))
            if gpus and has + gpus > most_gpus:
                most = format_gpus(int(most_gpus))
                return too_many_gpus, f"{whose} may use {most} at once, and has {format_gpus(has)}."
            if self._jobs[whose] >= most_jobs:
                most = f"{most_jobs:.0f} jobs, and pools with GPUs,"
                return too_many_jobs, f"{whose} may run {most} at once."
        return None

    def gpus_left(self, user: str) -> float:
        """Return how many GPUs another thing of a user may have."""
        limits = self._limits_of(user)
        if any(self._jobs[limit.whose] >= limit.jobs for limit in limits):
            return 0
        left = (limit.gpus - len(self._gpus.get(limit.whose, ())) for limit in limits)
        return min(left, default=math.inf)

    def _limits_of(self, user: str) -> list[_Limit]:
        if user not in self._limits:
            own = self._policy.limits_of(user)
            every = [_Limit(f"User {user}", _most(own.max_gpus), _most(own.max_jobs), _OF_USER)]
            for name, group in self._policy.groups_of(user):
                totals = _most(group.max_total_gpus), _most(group.max_total_jobs)
                every.append(_Limit(f"Group {name}", *totals, _OF_GROUP))
            self._limits[user] = [one for one in every if min(one.gpus, one.jobs) < math.inf]
        return self._limits[user]


def _most(limit: int | None) -> float:
    return math.inf if limit is None else limit
