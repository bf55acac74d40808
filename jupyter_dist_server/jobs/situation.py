"""What a plan is made from: the machine, what everybody has, and who waits."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psutil

from ..gpus.gpu_state import GpuState
from .held_file import name_of
from .job import Job
from .lease import holders
from .line import in_line
from .plan import Held, Machine, Want, in_order

REAL_MEMORY = 64 * 2**20
"""Bytes on a GPU above which a process uses it; less is what a desktop or a monitor has there."""


@dataclass(frozen=True)
class Situation:
    """What `plan` and `forecast` are asked about."""

    machine: Machine
    held: list[Held]
    ordered: list[Want]


def situation(
    eligible: Iterable[Job],
    active: Iterable[Job],
    gpus: GpuState | None,
    head_since: Mapping[int, float],
) -> Situation:
    """Look at leases and at the line, and bring them together with the user's own jobs.

    Parameters
    ----------
    eligible : iterable of Job
        The user's jobs that may start, in order.
    active : iterable of Job
        Those that have a runner.
    gpus : GpuState or None
        What NVML said, if any job needs that.
    head_since : mapping
        Since when jobs have been the first that does not fit.
    """
    now, user = time.time(), name_of(os.getuid())
    leases = holders(gpus.inventory) if gpus else {}
    held = [_held(job, user) for job in active]
    ours = {uuid for one in held for uuid in one.gpus}
    held += [_leased(uuid, who, now) for uuid, who in leases.items() if uuid not in ours]
    queues = {user: [_want(job, user, head_since) for job in eligible]}
    for ticket in in_line() if gpus else ():
        if not str(ticket.get("pool")).startswith(ticket_name(os.getuid())):
            # Of a pool, as of a job: what it waits for is not in our store.
            queues.setdefault(f"{ticket['user']}'s line", []).append(_ticket(ticket, now))
    ordered = in_order(held, queues, now)
    return Situation(_machine(gpus, leases), held, ordered)


def ticket_name(uid: int, job: Job | None = None) -> str:
    """Return how a user's dispatcher calls itself in the line, with the job that waits there."""
    return f"jobs-{uid}-" + (str(job.id) if job else "")


def _machine(gpus: GpuState | None, leases: Mapping[str, Any]) -> Machine:
    sizes, blocked = {}, set()
    for gpu in gpus.inventory.gpus if gpus else ():
        sizes[gpu.uuid] = gpu.memory_total
        rows = gpus.processes.get(gpu.uuid, []) if gpus else []
        if gpu.uuid not in leases and any((row["memory"] or 0) > REAL_MEMORY for row in rows):
            blocked.add(gpu.uuid)
    cpus, memory = os.cpu_count() or 1, psutil.virtual_memory().total
    return Machine(sizes, frozenset(blocked), cpus, memory)


def _held(job: Job, user: str) -> Held:
    return Held(
        str(job.id),
        user,
        frozenset(job.gpu_uuids),
        since=job.started or time.time(),
        ends_by=job.ends_by,
        cpus=job.cpus,
        memory=job.memory,
        share=job.share,
    )


def _leased(uuid: str, who: Mapping[str, Any], now: float) -> Held:
    ends_by, since = who.get("ends_by"), who.get("since")
    return Held(
        f"lease {uuid}",
        who["user"] or "",
        frozenset([uuid]),
        since=float(since) if isinstance(since, int | float) else now,
        ends_by=float(ends_by) if isinstance(ends_by, int | float) else None,
    )


def _want(job: Job, user: str, head_since: Mapping[int, float]) -> Want:
    return Want(
        str(job.id),
        user,
        job.queued,
        gpus=job.gpus,
        only=frozenset(job.gpu_ids) if job.gpu_ids else None,
        limit=job.limit,
        cpus=job.cpus,
        memory=job.memory,
        share=job.share,
        head_since=head_since.get(job.id, float("inf")),
    )


def _ticket(ticket: Mapping[str, Any], now: float) -> Want:
    """Read what another process says that it waits for; it may say anything."""
    gpus, count, since = frozenset(ticket["gpus"]), ticket.get("count"), ticket.get("since")
    return Want(
        ticket["file"],
        ticket["user"],
        min(now, float(since)) if isinstance(since, int | float) else now,
        gpus=min(count, len(gpus)) if isinstance(count, int) and count >= 0 else len(gpus),
        only=gpus,
    )
