"""Why GPUs are not available: a lease, a waiting pool, or a process without a lease."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

import psutil

from ..common.protocol.sampler_messages import GpuProcess
from ..gpus.used_without_lease import GpuUse
from ..jobs.leases.lease import GpuLease
from ..jobs.rules.closures import Closure
from ..jobs.schedule.situation import Waiting
from .requests.request import PoolRequest


def unavailable(
    request: PoolRequest,
    leases: Mapping[str, GpuLease],
    uses: Mapping[str, GpuUse],
    line: Iterable[Waiting],
    closed: Mapping[str, Closure],
) -> dict[str, str]:
    """Tell which GPUs a request cannot get, and why: by UUID, in words after "GPU 1 is"."""
    found = {}
    for uuid, use in foreign(request, uses).items():
        if uuid not in leases:
            found[uuid] = str(use)
    for waiting in line:
        for uuid in waiting.gpus:
            found[uuid] = f"reserved for {_who(waiting)}, who is waiting for it"
    found |= {uuid: str(closure) for uuid, closure in closed.items()}
    for uuid, lease in leases.items():
        if not (request.oversubscribe and lease.shared):
            found[uuid] = _lease(lease)
    return found


def foreign(request: PoolRequest, uses: Mapping[str, GpuUse]) -> dict[str, GpuUse]:
    """Return what uses GPUs besides the notebook's own kernel; nothing if the request forces."""
    others = {uuid: use.without(request.kernel_pid) for uuid, use in uses.items()}
    return {uuid: use for uuid, use in others.items() if use and not request.force}


def may_be_ending(use: GpuUse) -> bool:
    """Tell whether it is, or may be, a rank that was killed a moment ago."""
    return bool(use.unseen) or any(map(_may_be_ending, use.processes))


def _may_be_ending(row: GpuProcess) -> bool:
    if row.command is None:
        return True
    if row.user is None:  # hidden from us, as it is another user's
        return False
    try:
        process = psutil.Process(row.pid)
        return process.status() == psutil.STATUS_ZOMBIE or process.name().startswith("dist-rank")
    except psutil.NoSuchProcess:
        return True


def _lease(lease: GpuLease) -> str:
    if lease.obstacle:
        return f"blocked: {lease.obstacle} of {lease.user} cannot be locked"
    if lease.user is None:
        return "locked by another program"
    others = len(lease.others)
    more = f", and shared with {others} more" if others else ""
    return f"leased by {_who(lease)}{more}"


def _who(who: GpuLease | Waiting) -> str:
    notebook = f" of {who.notebook}" if who.notebook else ""
    pool = str(who.pool)
    name = f"job {pool.split('-')[1]}" if pool.startswith("job-") else f"pool {pool}"
    idle_since = who.idle_since if isinstance(who, GpuLease) else None
    idle = f", idle since {clock(idle_since)}" if idle_since else ""
    if isinstance(who, GpuLease) and (parks := who.parks(time.time())):
        idle += f", {parks}"
    return f"{who.user} ({name}{notebook}, since {clock(who.since)}{idle})"


def clock(moment: float | None) -> str:
    """Write a time, with the day if it is not today."""
    if moment is None:
        return "an unknown time"
    then = time.localtime(moment)
    today = time.strftime("%x", then) == time.strftime("%x")
    return time.strftime("%H:%M" if today else "%d %b, %H:%M", then)
