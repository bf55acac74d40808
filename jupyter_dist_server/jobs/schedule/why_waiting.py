"""Why a job waits, in a sentence."""

from __future__ import annotations

from ...gpus.gpu_state import GpuState
from ..store.job import Job
from ..store.words import write_moment
from .plan import Plan
from .situation import Situation


def detail(job: Job, reason: str, there: Situation, wanted: Plan, seen: GpuState | None) -> str:
    """Say more about a reason of `plan`."""
    gpus = len(there.machine.gpus)
    if reason == "BadConstraints" and job.gpus > gpus:
        why = seen.inventory.reason if seen and not gpus else None
        return f"It needs {job.gpus} GPUs. {why or f'This machine has {gpus}.'}"
    if reason == "BadConstraints":
        return "This machine does not have the cores or the memory that it asks for."
    if reason == "ReqNodeNotAvail":
        lost = sorted(set(job.gpu_ids) - there.machine.gpus.keys())
        return f"GPU {', '.join(lost)}, which it asks for, is not available."
    if reason == "Resources" and job.gpus:
        used = set().union(*(one.gpus for one in there.held)) | there.machine.blocked
        free = len(there.machine.gpus.keys() - used)
        strangers = "".join(_strangers(uuid, seen) for uuid in sorted(there.machine.blocked))
        return f"It needs {job.gpus} GPUs; {free} are free.{strangers}{_by_when(job, wanted)}"
    if reason == "Resources":
        return "It waits for cores or memory."
    head = next((want for want in there.ordered if wanted.head and want.id == wanted.head.id), None)
    if head and wanted.kept and head.id != str(job.id):
        whose = f"{head.name} of {head.user}" if " " in head.id else f"job {head.id}"
        return f"GPUs are kept for {whose}, which comes first."
    return ""


def _strangers(uuid: str, seen: GpuState | None) -> str:
    """Name the processes without a lease that use a GPU."""
    rows = seen.processes.get(uuid, []) if seen else []
    names = {f"{row.command or 'a process'} (pid {row.pid}, {row.user})" for row in rows}
    told = "".join(filter(str.isprintable, ", ".join(sorted(names))))
    return f" GPU {uuid} is used by {told}." if told else ""


def _by_when(job: Job, wanted: Plan) -> str:
    head = wanted.head
    if head is None or head.id != str(job.id) or not head.certain:
        return ""
    return f" It starts by {write_moment(head.start)} at the latest."
