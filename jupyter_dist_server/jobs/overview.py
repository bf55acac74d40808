"""All that runs and waits on this machine: own jobs, pools, and what others show of theirs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..gpus.gpu_state import GpuState
from .eligible import obstacles
from .held_file import name_of
from .job import Job
from .plan import Expected, forecast
from .situation import situation
from .states import PENDING
from .store import Store

BATCH, POOL, OTHER = "batch", "pool", "other"


@dataclass(frozen=True)
class Row:
    """One line of ``jdist queue``: somebody who has something, or waits for it."""

    id: str
    """``12`` or ``12_3`` of a job, ``p-3f2a…`` of a pool."""
    user: str
    name: str
    """Of the job, or the notebook."""
    kind: str
    """``batch``, ``pool``, or ``other``: a program that locks a GPU itself."""
    state: str
    gpus: int
    gpu_uuids: tuple[str, ...] = ()
    limit: float | None = None
    since: float | None = None
    """When it started, or, while it waits, since when it does."""
    ends_by: float | None = None
    idle_since: float | None = None
    """Since when no cell has run in a pool."""
    reason: str = ""
    detail: str = ""
    expected: Expected | None = None
    """When it is expected to start, if that was asked for and is known."""
    job: Job | None = None
    """If it is one of ours."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` and REST tell; `Job.to_json` tells more of a job."""
        told = {name: getattr(self, name) for name in Row.__dataclass_fields__ if name != "job"}
        expected = self.expected and {
            "start": self.expected.start,
            "certain": self.expected.certain,
        }
        return told | {"expected": expected, "priority": self.job.priority if self.job else None}


def overview(store: Store, gpus: GpuState | None = None, *, start: bool = False) -> list[Row]:
    """Return a row for everything on this machine: first what runs, then what waits, in order.

    Parameters
    ----------
    store : Store
        The user's own jobs.
    gpus : GpuState or None
        What NVML says; needed for `start` if any job needs GPUs.
    start : bool
        Whether to tell when what waits is expected to start.
    """
    active, pending = store.active(), store.pending()
    expected = _expected(store, pending, active, gpus) if start else {}
    return [_own(job, expected) for job in [*active, *pending]]


def _expected(
    store: Store, pending: list[Job], active: list[Job], gpus: GpuState | None
) -> Mapping[str, Expected]:
    now = time.time()
    found = obstacles(pending, active, store.dependencies(), now)
    there = situation([job for job in pending if job.id not in found], active, gpus, {})
    return forecast(there.machine, there.held, there.ordered, now)


def _own(job: Job, expected: Mapping[str, Expected]) -> Row:
    waits = job.state == PENDING
    return Row(
        id=job.label,
        user=name_of(os.getuid()),
        name=job.name,
        kind=BATCH,
        state=job.state,
        gpus=job.gpus,
        gpu_uuids=job.gpu_uuids,
        limit=job.limit,
        since=job.queued if waits else job.started,
        ends_by=job.ends_by,
        reason=job.reason if waits else "",
        detail=job.detail,
        expected=expected.get(str(job.id)) if waits else None,
        job=job,
    )
