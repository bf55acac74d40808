"""What is wrong with the GPUs of a job that runs: one is lost, or somebody uses too much of it.

Written into the details of the job, so that all who share a GPU read it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping

import psutil

from ..common.units import format_bytes
from .leases.lease import running
from .store.job import Job
from .variables import JOB

Memory = Mapping[int, int | None]
"""Bytes of a GPU by pid."""


def gpu_notes(
    jobs: list[Job], lost: Mapping[str, str], used: Mapping[str, Memory]
) -> dict[int, str]:
    """Return what is to be said of each running job, by id.

    `lost` tells by UUID why a GPU does not respond, `used` what processes use of shared GPUs.
    """
    overuse = {uuid: _overuse(uuid, memory, jobs) for uuid, memory in used.items()}
    found = {}
    for job in jobs:
        said = [
            f"GPU {uuid} does not respond: {lost[uuid]}." for uuid in job.gpu_uuids if uuid in lost
        ]
        if job.share is not None:
            said += [sentence for uuid in job.gpu_uuids for sentence in overuse.get(uuid, ())]
        found[job.id] = " ".join(said)
    return found


def _overuse(uuid: str, memory: Memory, jobs: list[Job]) -> list[str]:
    """Name own jobs and other users that use more of a shared GPU than they asked for."""
    ours, theirs = Counter[str](), Counter[str]()
    for pid, size in memory.items():
        with contextlib.suppress(psutil.Error):  # it has ended, or is in another container
            process = psutil.Process(pid)
            try:
                ours[process.environ().get(JOB, "").partition(".")[0]] += size or 0
            except psutil.AccessDenied:
                theirs[process.username()] += size or 0
    said = [
        _sentence(f"Job {job.label} uses", uuid, ours[str(job.id)], job.share)
        for job in jobs
        if job.share is not None and uuid in job.gpu_uuids and ours[str(job.id)] > job.share
    ]
    asked = Counter[str]()
    for lease in running():
        if uuid in lease.gpus and lease.share_mib:
            asked[lease.user] += int(lease.share_mib) << 20
    return said + [
        _sentence(f"Processes of {user} use", uuid, size, asked[user])
        for user, size in theirs.items()
        if size > asked[user]
    ]


def _sentence(who: str, uuid: str, size: int, asked: int) -> str:
    return (
        f"{who} {format_bytes(size)} of GPU {uuid}, more than the {format_bytes(asked)} asked for."
    )
