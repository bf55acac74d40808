"""Jobs with ``--every``: after each run, the next one is submitted, as by Slurm's ``scrontab``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from datetime import datetime

from ..common.errors import DistError
from ..common.units import read_limit
from .store.job import AGAIN, Job
from .store.states import CANCELLED, PENDING
from .store.store import Store


def next_run(every: str, before: float, now: float) -> float:
    """Return when the next run begins, after one that was to begin at a moment `before`.

    `every` is a time such as ``6h``, or a line of cron. Runs whose time is over are left out.
    """
    if len(every.split()) == 5:
        from cronsim import CronSim, CronSimError  # not above: most jobs do without

        try:
            # By the machine's clock, as cron does.
            times = (at.timestamp() for at in CronSim(every, datetime.fromtimestamp(now)))
            # When clocks are set back, a time of day comes twice, and is the first of both.
            found = next((moment for moment in times if moment > now), None)
        except CronSimError as error:
            raise _bad(every, f" ({error})") from error
        if found is None:
            raise _bad(every, "")
        return found
    try:
        seconds = read_limit(every)
    except DistError as error:
        raise _bad(every, "") from error
    if seconds is None:
        raise _bad(every, "")
    return before + max(1, math.floor((now - before) / seconds) + 1) * seconds


def _bad(every: str, why: str) -> DistError:
    message = f"“{every}” is neither a time nor a line of cron{why}."
    return DistError("bad_time", message, "Such as 30m, 6h, 1d or “0 3 * * *”.", "every")


def first_run(every: str, begin: float | None) -> float | None:
    """Check ``--every``, and return when the first run begins; `None` is now."""
    now = time.time()
    found = next_run(every, now, now if begin is None else begin)
    return found if len(every.split()) == 5 else begin


def submit_next(store: Store, job: Job) -> None:
    """Submit the next run of a job that has ended, unless it was cancelled."""
    if not job.spec.every or job.state == CANCELLED or job.cancel_at is not None:
        return
    now = time.time()
    before = job.submitted if job.begin is None else job.begin
    fields = {"state": PENDING, "reason": "None", "detail": "", "held": False, "attempt": 1}
    fields |= {"launch": None, "boot": None, "submitted": now, "queued": now}
    begin = next_run(job.spec.every, before, now)
    store.submit([Job.of(vars(job) | AGAIN | fields | {"begin": begin})], _token(job))


def newest_runs(store: Store, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs, and instead of ended runs of a series the newest run of it."""
    found: dict[int, Job] = {}
    for job in jobs:
        while job.is_ended and job.spec.every and (ids := store.submitted(_token(job))):
            job = store.get(ids[0])
        found[job.id] = job
    return list(found.values())


def _token(job: Job) -> str:
    """Return the name of the submission that follows a run: there is one at most."""
    return f"after {job.id}"
