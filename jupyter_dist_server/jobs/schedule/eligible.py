"""Which pending jobs may start at all, and why the others may not: before any GPU is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..store.job import Job
from ..store.states import COMPLETED
from ..store.words import write_moment

HELD = "JobHeldUser", "Held; “jdist release” lets it start."
"""Reason and detail of a held job."""
SATISFIED, NOT_YET, NEVER = "satisfied", "not yet", "never"


@dataclass(frozen=True)
class Obstacle:
    """Why a job may not start, whatever is free."""

    reason: str
    detail: str
    until: float | None = None
    """When that is over, if a clock decides it."""


def dependency_state(other: Job, kind: str) -> str:
    """Tell whether a job that ended as `other` did satisfies a dependency: Slurm's types."""
    if kind == "after":
        return NOT_YET if other.started is None and not other.is_ended else SATISFIED
    if not other.is_ended:
        return NOT_YET
    if kind == "afterany":
        return SATISFIED
    return SATISFIED if (kind == "afterok") == (other.state == COMPLETED) else NEVER


def obstacles(
    pending: Sequence[Job],
    active: Iterable[Job],
    dependencies: Mapping[int, Sequence[tuple[Job, str]]],
    now: float,
) -> dict[int, Obstacle]:
    """Tell why pending jobs may not start.

    Parameters
    ----------
    pending : sequence of Job
        In the user's order.
    active : iterable of Job
        Those that a runner has.
    dependencies : mapping
        Other jobs and the type of the dependency, by id.
    now : float
        Seconds since the epoch.

    Returns
    -------
    dict
        By id; jobs that may start are not in it.
    """
    running = list(active)
    arrays = Counter(job.array for job in running)
    names = Counter(job.name for job in running)
    found: dict[int, Obstacle] = {}
    ahead: dict[str, set[int]] = {}
    for job in running:
        ahead.setdefault(job.name, set()).add(_family(job))
    for job in pending:
        others = dependencies.get(job.id, ())
        is_alone = not ahead.get(job.name, set()) - {_family(job)}
        if obstacle := _obstacle(job, others, arrays, names, is_alone, now):
            found[job.id] = obstacle
        else:
            arrays[job.array] += 1
            names[job.name] += 1
        ahead.setdefault(job.name, set()).add(_family(job))
    return found


def _family(job: Job) -> int:
    """Return what tasks of one array have in common, and no other job has."""
    return -job.id if job.array is None else job.array


def _obstacle(
    job: Job,
    others: Sequence[tuple[Job, str]],
    arrays: Counter[int | None],
    names: Counter[str],
    is_alone: bool,
    now: float,
) -> Obstacle | None:
    if job.held:
        return Obstacle(*HELD)
    for other, kind in others:
        state = dependency_state(other, kind)
        if state == NEVER:
            told = f"{kind}:{other.label}: job {other.label} is {other.state}."
            return Obstacle("DependencyNeverSatisfied", told)
        if state == NOT_YET:
            return Obstacle(
                "Dependency", f"{kind}:{other.label}: job {other.label} is {other.state}."
            )
    if job.begin is not None and job.begin > now:
        told = f"--begin: it starts after {write_moment(job.begin)}."
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
