"""What the failure of a task does to the tasks of its array that wait."""

from __future__ import annotations

import time

from .schedule.may_start import HELD_FAILURES
from .store.job import Job
from .store.states import CANCELLED, COMPLETED, FAILED, FAILURES, NOT_STARTED, OUT_OF_MEMORY
from .store.store import Store

_IN_A_ROW = 3
"""Quick failures after which the rest is held."""
_QUICK = 60.0
"""Seconds."""
_WAIT = "array = ? AND state = 'PENDING'"


def look_at_array(store: Store, job: Job) -> None:
    """Cancel or hold the waiting tasks of a job's array, if too many have failed."""
    if job.array is not None and job.state in FAILURES:
        _cancel_after_many(store, job, job.array)
        _hold_after_quick(store, job, job.array)


def _cancel_after_many(store: Store, job: Job, array: int) -> None:
    if (most := job.spec.max_fails) is None:
        return
    failed = f"SELECT count(*) FROM jobs WHERE array = ? AND state IN {FAILURES}"
    if store.read(failed, array)[0][0] < most:
        return
    ids = [id for (id,) in store.read(f"SELECT id FROM jobs WHERE {_WAIT}", array)]
    tasks = "1 task of its array has" if most == 1 else f"{most} tasks of its array have"
    told = f"{tasks} failed (--max-fails). {NOT_STARTED}"
    ends = {"state": CANCELLED, "reason": "JobArrayMaxFails", "detail": told, "ended": time.time()}
    store.change(ids, "state = 'PENDING'", **ends)


def _hold_after_quick(store: Store, job: Job, array: int) -> None:
    rows = store.read(f"SELECT id, queued FROM jobs WHERE {_WAIT} AND NOT held", array)
    released = min((row["queued"] for row in rows), default=None)
    if released is None:
        return
    ended = f"array = ? AND ended >= ? AND state IN {(COMPLETED, FAILED, OUT_OF_MEMORY)}"
    last = store.select(ended, array, released, order=f"ended DESC, id DESC LIMIT {_IN_A_ROW}")
    if len(last) < _IN_A_ROW or not all(map(_failed_quickly, last)):
        return
    log = f"jdist logs {'-e ' if job.spec.error else ''}{job.label}"
    told = (
        f"{_IN_A_ROW} tasks in a row failed within {_QUICK:g} s, the last one was {job.label}: "
        f"{job.detail} See “{log}”; “jdist release {array}” lets the rest start."
    )
    fields = {"held": True, "reason": HELD_FAILURES, "detail": told}
    store.change([row["id"] for row in rows], "state = 'PENDING' AND NOT held", **fields)


def _failed_quickly(job: Job) -> bool:
    if job.state == COMPLETED or job.ended is None:
        return False
    return job.started is None or job.ended - job.started <= _QUICK
