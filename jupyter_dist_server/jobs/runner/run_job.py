"""Turns a process that was forked for a job into its runner."""

from __future__ import annotations

from pathlib import Path

from ...common.files.inherited_lease import InheritedLease
from ...common.files.own_files import own
from ...common.processes.process_ref import adopt_descendants, boot_id, call_ourselves
from ..job_command import remove_folders
from ..launch.ensure_dispatcher import ensure
from ..store.states import CONFIGURING
from ..store.store import Store
from .notify import notify
from .runner import Runner


def run_job(folder: Path, id: int, launch: str, descriptors: list[int]) -> None:
    """Run a job in this process, which was forked for it."""
    call_ourselves("dist-runner")
    adopt_descendants()
    lock = own(descriptors[0])  # tells that the job has a runner, until this process ends
    lease = InheritedLease(descriptors[1:]) if descriptors[1:] else None
    store = Store(folder)
    job = store.get(id)
    ended, asked_to_end = None, False
    if (job.state, job.launch) == (CONFIGURING, launch) and job.boot == boot_id():
        runner = Runner(store, job, lease)
        runner.run()
        ended, asked_to_end = store.get(id), runner.asked_to_end
    if lease:
        lease.close()
    remove_folders(job, store)
    lock.close()
    if not asked_to_end:  # a shutdown: nothing is to start now
        ensure(store)
    if ended and ended.is_ended:
        notify(store, ended)
    store.close()
