"""Telling the user of a job's end, by a command of theirs."""

from __future__ import annotations

from ..job_command import job_environment
from ..store.job import Job
from ..store.store import Store

_TAKES = 60.0


def notify(store: Store, job: Job) -> None:
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
            timeout=_TAKES,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        logging.getLogger(__name__).warning("Job %s: --notify failed: %s", job.label, error)
