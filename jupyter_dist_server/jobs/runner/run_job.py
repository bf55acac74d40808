"""Turns a process that was forked for a job into its runner."""

from __future__ import annotations

from pathlib import Path

from ...common.files.inherited_lease import InheritedLease
from ...common.files.own_files import own
from ...common.patience import patience
from ...common.processes.process_ref import adopt_descendants, boot_id, call_ourselves
from ..job_command import job_environment, remove_folders
from ..launch import ensure
from ..store.job import Job
from ..store.states import CONFIGURING
from ..store.store import Store
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
        _notify(store, ended)
    store.close()


def _notify(store: Store, job: Job) -> None:
    """Run the ``--notify`` command of a job; the job's own GPUs are free by now."""
    if not job.spec.notify:
        return
    import logging  # not above: each runner would carry them
    import subprocess

    environment = job_environment(job, store) | {
        "JDIST_JOB_LABEL": job.label,
        "JDIST_JOB_STATE": job.state,
        "JDIST_JOB_REASON": job.reason,
        "JDIST_JOB_DETAIL": job.detail,
        "JDIST_JOB_EXIT_CODE": "" if job.exit_code is None else str(job.exit_code),
        "CUDA_VISIBLE_DEVICES": "",
    }
    try:
        subprocess.run(
            ["/bin/sh", "-c", job.spec.notify],
            cwd=job.spec.cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=2 * patience.program,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        logging.getLogger(__name__).warning("Job %s: --notify failed: %s", job.label, error)
