"""Which pending jobs may start at all, and why not the others, before any GPU is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ..store.job import Job
from ..store.slurm_formats import write_moment
from ..store.states import COMPLETED

HELD = "JobHeldUser", "Held; “jdist release” lets it start."
HELD_FAILURES = "JobHeldFailures"
_HELD = (HELD[0], HELD_FAILURES)
NEVER = "DependencyNeverSatisfied"
ANY = "?"
"""Begins the types of a job's dependencies if one of them is enough."""


@dataclass(frozen=True)
class Obstacle:
    """Why a job may not start, whatever is free."""

    reason: str
    detail: str
    until: float | None = None
    """When a clock ends it, if one does."""


def write_dependency(kind: str, label: str) -> str:
    """Write a dependency as its option: ``afterok:12``, ``after:12+5``."""
    kind, plus, minutes = kind.removeprefix(ANY).partition("+")
    return f"{kind}:{label}{plus}{minutes}"


def _unmet(other: Job, kind: str, now: float) -> Obstacle | None:
    """Tell what a dependency on a job waits for, in Slurm's types; `None` if it is satisfied."""
    dependency = write_dependency(kind, other.label)
    kind, _, minutes = kind.removeprefix(ANY).partition("+")
    told = f"{dependency}: job {other.label} is {other.state}."
    if kind == "after":
        begun = other.ended if other.started is None else other.started
        if begun is None:
            return Obstacle("Dependency", told)
        until = begun + 60 * int(minutes or 0)
        if until <= now:
            return None
        return Obstacle("Dependency", f"{dependency}: until {write_moment(until)}.", until)
    if not other.is_ended:
        return Obstacle("Dependency", told)
    if kind == "afterany" or (kind == "afterok") == (other.state == COMPLETED):
        return None
    return Obstacle(NEVER, told)


def _all_unmet(others: Sequence[tuple[Job, str]], now: float) -> Obstacle | None:
    unmet = [found for other, kind in others if (found := _unmet(other, kind, now))]
    never = [one for one in unmet if one.reason == NEVER]
    is_any = any(kind.startswith(ANY) for _, kind in others)
    if not unmet or (is_any and len(unmet) < len(others)):
        return None
    if is_any:
        told = next((one for one in unmet if one.reason != NEVER), unmet[0])
    else:
        told = (never or unmet)[0]
    until = min((one.until for one in unmet if one.until is not None), default=None)
    return replace(told, until=until)


def obstacles(
    pending: Sequence[Job],
    active: Iterable[Job],
    dependencies: Mapping[int, Sequence[tuple[Job, str]]],
    now: float,
) -> dict[int, Obstacle]:
    """Tell by id which pending jobs, in the user's order, may not start.

    `dependencies` has by id the other jobs, and the type of the dependency on each.
    """
    running = list(active)
    arrays = Counter(job.array for job in running)
    names = Counter(job.name for job in running)
    found: dict[int, Obstacle] = {}
    ahead: dict[str, set[int]] = {}
    singles = {job.name for job in pending if job.spec.singleton}  # of most queues there are none
    for job in running:
        ahead.setdefault(job.name, set()).add(_family(job))
    for job in pending:
        others = dependencies.get(job.id, ())
        is_alone = job.name not in singles or not ahead.get(job.name, set()) - {_family(job)}
        if obstacle := _obstacle(job, others, arrays, names, is_alone, now):
            found[job.id] = obstacle
        else:
            arrays[job.array] += 1
            names[job.name] += 1
        if job.name in singles:
            ahead.setdefault(job.name, set()).add(_family(job))
    return found


def _family(job: Job) -> int:
    """Return what the tasks of one array, and no other jobs, have in common."""
    return -job.id if job.array is None else job.array


@lru_cache(maxsize=64)
def _held(reason: str, detail: str) -> Obstacle:
    """Return one object for all tasks of an array: there may be 10,000."""
    return Obstacle(reason, detail) if reason in _HELD else Obstacle(*HELD)


def _obstacle(
    job: Job,
    others: Sequence[tuple[Job, str]],
    arrays: Counter[int | None],
    names: Counter[str],
    is_alone: bool,
    now: float,
) -> Obstacle | None:
    if job.held:
        return _held(job.reason, job.detail)
    if unmet := _all_unmet(others, now):
        return unmet
    if job.begin is not None and job.begin > now:
        option = "--every" if job.spec.every else "--begin"
        told = f"{option}: it starts after {write_moment(job.begin)}."
        return Obstacle("BeginTime", told, job.begin)
    if job.spec.singleton and not is_alone:
        return Obstacle("Dependency", f"singleton: another job named {job.name} comes first.")
    most = job.spec.array_limit
    if job.array is not None and most is not None and arrays[job.array] >= most:
        return Obstacle("JobArrayTaskLimit", f"{most} tasks of its array run at once.")
    if job.spec.max_jobs is not None and names[job.name] >= job.spec.max_jobs:
        told = f"{job.spec.max_jobs} jobs named {job.name} run at once."
        return Obstacle("QOSMaxJobsPerUserLimit", told)
    return None
