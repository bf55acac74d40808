"""Showing what a job prints, as it prints it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

from ..jobs.command import log_paths
from ..jobs.job import Job
from ..jobs.states import PENDING
from ..jobs.store import Store
from ..jobs.wake import Wake

_PIECE = 65536


def follow(store: Store, job: Job, out: BinaryIO) -> Job:
    """Write a job's output until it has ended; return the job then."""
    path = log_paths(job)[0]
    place = 0
    wake = Wake([store.watched])
    watched = False
    try:
        while True:
            job = store.get(job.id)
            if not watched and os.path.isdir(os.path.dirname(path)):
                watched = wake.watch(os.path.dirname(path))
            if job.state != PENDING:
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(path).st_size < place:  # replaced by a shorter one
                        place = 0
                for piece in read_from(path, place):
                    place += len(piece)
                    out.write(piece)
                out.flush()
            if job.is_ended:
                return job
            wake.wait(10.0)
    finally:
        wake.close()


def read_from(path: str, place: int) -> Iterator[bytes]:
    """Yield what is in a file from a place on, piece by piece; nothing if there is no file."""
    try:
        with open(path, "rb") as file:
            file.seek(place)
            while piece := file.read(_PIECE):
                yield piece
    except FileNotFoundError:
        return
