"""How jobs use their GPUs: read by a process of its own, while a job with GPUs runs.

Not by runners, which have to stay small, nor by the dispatcher, which ends when nothing waits. It
owns nothing: if it is killed, another one goes on.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from ..common.processes.process_ref import call_ourselves
from ..common.units import format_bytes
from ..gpus import nvml
from ..gpus.sampler.gpu_processes import memory_by_pid
from .file_changes import Wake
from .leases.lease import running
from .start_dispatcher import take_sampler_lock
from .store.attempt import GpuPoint, GpuUsage
from .store.job import Job
from .store.states import RUNNING
from .store.store import Store
from .variables import JOB

EVERY = "JDIST_SAMPLE_EVERY"
"""The environment variable with the seconds between two readings."""
_NOT_TOLD = (nvml.UNSUPPORTED, nvml.NO_PERMISSION)
"""Why a working GPU does not tell its memory: it uses the host's, say."""
_MOST_POINTS = 160
"""Points of a curve; beyond, each two become one, so that it covers an attempt of any length."""


Memory = Mapping[int, int | None]
"""Bytes of a GPU by pid."""


class Sampler:
    """Reads the GPUs of all jobs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._devices: dict[str, nvml.Device] = {}

    def run(self, every: float) -> None:
        """Read until no job with GPUs is left."""
        wake = Wake([self._store.watched])
        read_at: dict[str | None, float] = {}
        try:
            while jobs := [job for job in self._store.active() if job.gpu_uuids]:
                now = time.monotonic()
                running = [job for job in jobs if job.state == RUNNING]
                due = [job for job in running if now >= read_at.get(job.launch, -1.0) + every]
                if due:
                    self._read(due)
                    read_at |= {job.launch: now for job in due}
                ends = [read_at[job.launch] + every for job in running]
                wake.wait(max(0.0, min(ends) - now) if ends else None)
        finally:
            wake.close()

    def _read(self, jobs: list[Job]) -> None:
        if not {uuid for job in jobs for uuid in job.gpu_uuids} <= self._devices.keys():
            listed = nvml.devices()
            found = [] if isinstance(listed, nvml.Failure) else listed[0]
            self._devices = {device.uuid: device for device in found}
        lost: dict[str, str] = {}
        told = {uuid: memory_by_pid(one.handle) for uuid, one in self._devices.items()}
        used = {uuid: rows for uuid, rows in told.items() if not isinstance(rows, nvml.Failure)}
        elsewhere = self._elsewhere(jobs, used)
        for job in jobs:
            usage = self._store.usage(job)
            for uuid in job.gpu_uuids:
                device = self._devices.get(uuid)
                memory = (
                    nvml.query("nvmlDeviceGetMemoryInfo", device.handle) if device else nvml.LOST
                )
                if device is None or (isinstance(memory, nvml.Failure) and memory not in _NOT_TOLD):
                    lost[uuid] = memory
                    continue
                load = nvml.query("nvmlDeviceGetUtilizationRates", device.handle)
                load = None if isinstance(load, nvml.Failure) else int(load.gpu)
                in_use = 0 if isinstance(memory, nvml.Failure) else int(memory.used)
                seen = usage.setdefault(uuid, GpuUsage(memory_first=in_use))
                add_reading(seen, load, in_use, time.time())
                seen.elsewhere = sorted({*seen.elsewhere, *elsewhere[job.id]})
            self._store.note_usage(job, usage)
        shared = {uuid for job in jobs if job.share is not None for uuid in job.gpu_uuids}
        used = {uuid: rows for uuid, rows in used.items() if uuid in shared - lost.keys()}
        for job, note in zip(jobs, _gpu_notes(jobs, lost, used), strict=True):
            detail = " ".join(filter(None, [note, *elsewhere[job.id].values()]))
            if detail != job.detail:
                self._store.change([job.id], "state = 'RUNNING'", detail=detail)

    def _elsewhere(self, jobs: list[Job], used: Mapping[str, Memory]) -> dict[int, dict[str, str]]:
        """Return by job sentences on GPUs, by their labels, that it uses but does not have."""
        by_run = {job.run_name: job for job in jobs}
        found: dict[int, dict[str, str]] = {job.id: {} for job in jobs}
        for uuid, memory in used.items():
            for pid in memory:
                with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
                    job = by_run.get(_run_of(psutil.Process(pid)))
                    if job and uuid not in job.gpu_uuids:
                        gpu = self._devices[uuid].label
                        told = f"Process {pid} uses GPU {gpu}, which {_holder(uuid)}."
                        found[job.id][gpu] = told
        return found


def _run_of(process: psutil.Process) -> str:
    """Return which run of a job a process belongs to, if any."""
    return process.environ().get(JOB, "")


def _holder(uuid: str) -> str:
    """Return words that follow "GPU 0, which"."""
    for lease in running():
        if uuid in lease.gpus:
            whose = f"job {lease.label or lease.job}" if lease.job else f"pool {lease.pool}"
            return f"belongs to {whose} of {lease.user}"
    return "the job does not have"


def add_reading(seen: GpuUsage, load: int | None, memory: int, now: float) -> None:
    """Count one reading of a GPU: its load in percent, and the bytes in use."""
    place = seen.samples % seen.per_point
    if place and seen.curve:
        last = seen.curve[-1]
        seen.curve[-1] = _merged(last, place, GpuPoint(int(now), load, memory))
    else:
        seen.curve.append(GpuPoint(int(now), load, memory))
    if len(seen.curve) > _MOST_POINTS:
        pairs = zip(seen.curve[0:-1:2], seen.curve[1::2], strict=True)
        # The last one is the first of the next pair.
        seen.curve = [_merged(one, 1, other) for one, other in pairs] + seen.curve[-1:]
        seen.per_point *= 2
    seen.memory_peak = max(seen.memory_peak, memory)
    seen.samples += 1
    if load is not None:  # a MIG instance has none
        seen.load_sum += load
        seen.load_peak = max(seen.load_peak or 0, load)
        if load:
            seen.idle_since = None
        elif seen.idle_since is None:
            seen.idle_since = now


def _merged(one: GpuPoint, weight: int, other: GpuPoint) -> GpuPoint:
    """Merge two points; the first has the given weight, the second 1."""
    load = one.load if other.load is None else other.load
    if one.load is not None and other.load is not None:
        load = round((one.load * weight + other.load) / (weight + 1), 2)
    return GpuPoint(one.at, load, max(one.memory, other.memory))


def _gpu_notes(
    jobs: list[Job], lost: Mapping[str, str], used: Mapping[str, Memory]
) -> Iterator[str]:
    """Yield what is wrong with the GPUs of each job, so that all who share a GPU read it.

    `lost` tells by UUID why a GPU does not respond, `used` what processes use of shared GPUs.
    """
    overuse = {uuid: _overuse(uuid, memory, jobs) for uuid, memory in used.items()}
    for job in jobs:
        said = [
            f"GPU {uuid} does not respond: {lost[uuid]}." for uuid in job.gpu_uuids if uuid in lost
        ]
        if job.share is not None:
            said += [sentence for uuid in job.gpu_uuids for sentence in overuse.get(uuid, ())]
        yield " ".join(said)


def _overuse(uuid: str, memory: Memory, jobs: list[Job]) -> list[str]:
    """Name own jobs and other users that use more of a shared GPU than they asked for."""
    ours, theirs = Counter[str](), Counter[str]()
    for pid, size in memory.items():
        with contextlib.suppress(psutil.Error):  # it has ended, or is in another container
            process = psutil.Process(pid)
            try:
                ours[_run_of(process)] += size or 0
            except psutil.AccessDenied:
                theirs[process.username()] += size or 0
    said = [
        _sentence(f"Job {job.label} uses", uuid, ours[job.run_name], job.share)
        for job in jobs
        if job.share is not None and uuid in job.gpu_uuids and ours[job.run_name] > job.share
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


def main() -> None:
    """Be the sampler of a folder, unless there is one."""
    folder = Path(sys.argv[1])
    if take_sampler_lock(folder) is None:
        return
    call_ourselves("dist-sampler")
    if nvml.start() is None:
        store = Store(folder)
        Sampler(store).run(float(os.environ.get(EVERY, 10.0)))
        store.close()
