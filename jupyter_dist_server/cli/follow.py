"""Showing what a job prints, as it prints it."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from ..jobs.command import log_paths
from ..jobs.logs.log_reader import LogReader
from ..jobs.store.job import Job
from ..jobs.store.states import PENDING
from ..jobs.store.store import Store
from ..jobs.wake import Wake


def follow(store: Store, job: Job, out: BinaryIO) -> Job:
    """Write a job's output until it has ended; return the job then."""
    log = LogReader(log_paths(job)[0])
    folder = os.path.dirname(log.path)
    wake = Wake([store.watched])
    watched = False
    try:
        while True:
            job = store.get(job.id)
            if not watched and os.path.isdir(folder):
                watched = wake.watch(folder)
            if job.state != PENDING:
                _write(log, out)
            if job.is_ended:
                return job
            wake.wait(10.0)
    finally:
        wake.close()


def _write(log: LogReader, out: BinaryIO) -> None:
    while piece := log.read():
        if piece.replaced:
            print(f"jdist: {log.path} was replaced; this is the new file.", file=sys.stderr)
        if not piece.data:
            break
        out.write(piece.data)
    out.flush()
