"""Why a job waits, in a sentence."""

from __future__ import annotations

import os

from ...common.units import format_bytes, format_gpus, name_gpus
from ...common.users import name_of
from ...gpus.gpu_state import GpuState
from ...gpus.used_without_lease import in_use
from ..rules.closures import Closure
from ..store.job import Job
from ..store.slurm_formats import write_moment
from .plan import Plan
from .situation import Situation


def detail(job: Job, reason: str, there: Situation, wanted: Plan, seen: GpuState | None) -> str:
    """Return a sentence on a reason of `plan`, empty if there is no more to say."""
    gpus = len(there.machine.gpus)
    user = name_of(os.getuid())
    exceeded = there.running.exceeded(user, job.gpus)
    if exceeded and exceeded[0] == reason:
        return exceeded[1]
    if reason == "ReqNodeNotAvail" and not gpus:
        why = (seen.inventory.reason or "").partition(": ranks ")[0].rstrip(".") if seen else ""
        return f"No GPU is available: {why}."
    if reason == "BadConstraints" and job.gpus > gpus:
        return f"It needs {format_gpus(job.gpus)}. This machine has {gpus}."
    if reason == "BadConstraints" and job.gpus and job.share is not None:
        sizes = there.machine.gpus
        if job.share > max((sizes.get(uuid, 0) for uuid in job.gpu_ids or sizes), default=0):
            return f"No GPU that it may use has {format_bytes(job.share)} of memory."
    if reason == "BadConstraints":
        return "This machine does not have the cores or the memory that it asks for."
    if reason == "ReqNodeNotAvail":
        lost = sorted(set(job.gpu_ids) - there.machine.gpus.keys())
        if not lost:
            return f"It needs {format_gpus(job.gpus)}.{_closed(job, user, there, seen)}"
        return f"GPU {', '.join(lost)}, which it asks for, is not available."
    if reason == "Resources" and job.gpus:
        taken = set().union(*(one.gpus for one in there.held)) | there.machine.blocked
        free = len(there.machine.gpus.keys() - taken)
        used = _uses(there, seen) if seen else ""
        told = f"It needs {format_gpus(job.gpus)}; {free} {'is' if free == 1 else 'are'} free."
        return f"{told}{used}{_who_parks(there)}{_by_when(job, wanted)}"
    if reason == "Resources":
        return "It waits for cores or memory."
    head = next((want for want in there.ordered if wanted.head and want.id == wanted.head.id), None)
    if head and wanted.kept and head.id != str(job.id):
        id = head.id.partition(" ")[2]  # of an entry of a board
        whose = f"{head.name or id} of {head.user}" if id else f"job {head.id}"
        return f"GPUs are kept for {whose}, which comes first."
    return ""


def _uses(there: Situation, seen: GpuState) -> str:
    """Name what uses GPUs without a lease; GPUs as ``jdist info`` does."""
    labels = {gpu.uuid: gpu.label for gpu in seen.inventory.gpus}
    uses = in_use(seen, there.leases).items()
    return "".join(f" GPU {labels[uuid]} is {use}." for uuid, use in uses)


def _who_parks(there: Situation) -> str:
    """Name the pools that give their GPUs to others once they are idle for long."""
    parks = {
        lease.pool: f" {lease.user}'s pool {said}."
        for lease in there.leases.values()
        if (said := lease.parks(there.now))
    }
    return "".join(parks.values())


def _closed(job: Job, user: str, there: Situation, seen: GpuState | None) -> str:
    """Name the GPUs that it cannot have now, whoever uses them."""
    labels = {gpu.uuid: gpu.label for gpu in seen.inventory.gpus} if seen else {}
    closure = there.machine.rules.closure
    uuids = job.gpu_ids or tuple(there.machine.gpus)
    # What is open for so long now may be closed by the time at which it is free.
    limit = job.limit if any(closure(one, user, there.now, job.limit) for one in uuids) else None
    named: dict[Closure, list[str]] = {}
    for uuid in uuids:
        if found := closure(uuid, user, there.now, limit):
            named.setdefault(found, []).append(labels.get(uuid, uuid))
    told = ""
    for found, gpus in named.items():
        told += f" {name_gpus(gpus)} {'are' if len(gpus) > 1 else 'is'} {found}."
        if found.start > there.now:
            told += f" With a time limit, it may run there until {write_moment(found.start)}."
    return told


def _by_when(job: Job, wanted: Plan) -> str:
    head = wanted.head
    if head is None or head.id != str(job.id) or not head.certain:
        return ""
    return f" It starts by {write_moment(head.start)} at the latest."
