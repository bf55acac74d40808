"""All that runs and waits on this machine: own jobs, pools, and what others show of theirs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from ...common.users import name_of
from ..leases.lease import KnownLeaseholder, running
from ..rules.closures import Closure
from ..store.job import Job
from ..store.states import PENDING, RUNNING
from ..store.store import Store
from ..store.store_folder import store_name
from .board import POOL
from .may_start import obstacles
from .plan import Expected, forecast
from .situation import others, situation_of
from .wants import Want

if TYPE_CHECKING:
    from ...gpus.gpu_state import GpuState

BATCH, OTHER, RESERVATION = "batch", "other", "reservation"


class Row(msgspec.Struct, frozen=True):
    """One line of ``jdist queue``: what has something, or waits for it."""

    id: str
    """``12`` or ``12_3`` of a job, ``p-3f2a…`` of a pool."""
    user: str
    name: str
    kind: str
    """``batch``, ``pool``, ``reservation``, or ``other``: a program that locks a GPU itself."""
    state: str
    gpus: int
    gpu_uuids: tuple[str, ...] = ()
    limit: float | None = None
    since: float | None = None
    """When it started or, while it waits, was queued."""
    ends_by: float | None = None
    idle_since: float | None = None
    """Since when no cell has run in a pool, or all GPUs of an own job have been idle."""
    reason: str = ""
    detail: str = ""
    expected: Expected | None = None
    """When it is expected to start, if asked for and known."""
    job: Job | None = None
    """If it is one of ours."""

    def to_json(self) -> dict[str, Any]:
        """Return what ``--json`` and REST tell; `Job.to_json` tells more of a job."""
        told = {name: getattr(self, name) for name in Row.__struct_fields__ if name != "job"}
        expected = self.expected and asdict(self.expected)
        return told | {"expected": expected, "priority": self.job.priority if self.job else None}


def overview(store: Store, gpus: GpuState | None = None, *, start: bool = False) -> list[Row]:
    """Return a row for everything on this machine: first what runs, then what waits, in order.

    `gpus` is needed for the order between users, for the reasons of others, and for `start`: to
    tell when what waits is expected to start.
    """
    with store.at_one_time():  # or a job that starts meanwhile would be in neither list
        active, pending, upon = store.active(), store.pending(), store.dependencies()
    found = obstacles(pending, active, upon, time.time())
    boards = others(store)
    eligible = [job for job in pending if job.id not in found]
    there = situation_of(store, gpus, eligible, active, boards)
    expected = forecast(there.machine, there.held, there.ordered, there.now) if start else {}
    mine = user, _ = name_of(os.getuid()), store_name(store.folder)
    rows = [own_row(job, user, idle=_idle_since(store, job)) for job in active]
    for said in running():
        # A job of ours that is not active has ended: its runner is about to give back what it has.
        if said.job is None or (said.user, said.store) != mine:
            rows.append(_runs(said))
    rows += [
        Row(id="", user="", name="", kind=OTHER, state=RUNNING, gpus=1, gpu_uuids=(uuid,))
        for uuid, who in there.leases.items()
        if who.user is None
    ]
    wanted = there.plan()
    by_id = {str(job.id): job for job in pending}
    kinds = {board.file: board.content.kind for board in boards}
    for want in there.ordered:
        if job := by_id.pop(want.id, None):
            rows.append(own_row(job, user, expected.get(want.id)))
        else:
            reason = wanted.reason(want) if gpus else None
            rows.append(_waits(want, kinds, reason or "", expected.get(want.id)))
    reserved = {one for found in there.machine.rules.closed.values() for one in found if one.id}
    rows += [own_row(job, user) for job in by_id.values()]
    return rows + [_reserved(one) for one in sorted(reserved, key=lambda one: one.start)]


def _idle_since(store: Store, job: Job) -> float | None:
    seen = store.usage(job) if job.gpu_uuids else {}
    idle = [one.idle_since for one in seen.values() if one.idle_since is not None]
    return max(idle) if idle and len(idle) == len(seen) else None


def own_row(
    job: Job, user: str, expected: Expected | None = None, idle: float | None = None
) -> Row:
    """Return the row of a job of ours."""
    waits = job.state == PENDING
    return Row(
        id=job.label,
        user=user,
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
        idle_since=idle,
        expected=expected,
        job=job,
    )


def _runs(said: KnownLeaseholder) -> Row:
    """Read what another process says that it has; it may say anything."""
    is_job = said.job is not None
    return Row(
        id=(said.label if is_job else said.pool) or "",
        user=said.user,
        name=said.notebook or "",
        kind=BATCH if is_job else POOL,
        state=RUNNING,
        gpus=len(said.gpus),
        gpu_uuids=said.gpus,
        limit=None if said.ends_by is None or said.since is None else said.ends_by - said.since,
        since=said.since,
        ends_by=said.ends_by,
        idle_since=said.idle_since,
    )


def _reserved(one: Closure) -> Row:
    waits = one.start > time.time()
    return Row(
        id=one.id,
        user=one.whom,
        name=one.why,
        kind=RESERVATION,
        state=PENDING if waits else RUNNING,
        gpus=len(one.gpus),
        gpu_uuids=tuple(sorted(one.gpus)),
        limit=None if one.end is None else one.end - one.start,
        since=None if waits else one.start,
        ends_by=one.end,
        reason="Reservation" if waits else "",
        detail=f"{str(one)[:1].upper()}{str(one)[1:]}.",
        expected=Expected(one.start, True) if waits else None,
    )


def _waits(want: Want, kinds: Mapping[str, str], reason: str, expected: Expected | None) -> Row:
    file, _, id = want.id.partition(" ")
    return Row(
        id=id,
        user=want.user,
        name=want.name,
        kind=POOL if kinds.get(file) == POOL else BATCH,
        state=PENDING,
        gpus=want.gpus,
        limit=want.limit,
        since=want.queued,
        reason=reason,
        expected=expected,
    )
