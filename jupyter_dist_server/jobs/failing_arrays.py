"""What the failure of a task does to the tasks of its array that wait."""

from __future__ import annotations

import time

from .store.job import Job
from .store.states import CANCELLED, FAILURES, NOT_STARTED
from .store.store import Store

_WAIT = "array = ? AND state = 'PENDING'"


def look_at_array(store: Store, job: Job) -> None:
    """Cancel the waiting tasks of a job's array if as many have failed as ``--max-fails`` says."""
    most = job.spec.max_fails
    if job.array is None or job.state not in FAILURES or most is None:
        return
    failed = f"SELECT count(*) FROM jobs WHERE array = ? AND state IN {FAILURES}"
    if store.read(failed, job.array)[0][0] < most:
        return
    ids = [id for (id,) in store.read(f"SELECT id FROM jobs WHERE {_WAIT}", job.array)]
    tasks = "1 task of its array has" if most == 1 else f"{most} tasks of its array have"
    told = f"{tasks} failed (--max-fails). {NOT_STARTED}"
    ends = {"state": CANCELLED, "reason": "JobArrayMaxFails", "detail": told, "ended": time.time()}
    store.change(ids, "state = 'PENDING'", **ends)
