"""Which processes of the queue are stopped (SIGSTOP), each with what to do about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ..common.processes.process_ref import is_stopped
from .start_dispatcher import find_dispatcher
from .store.store import Store


def stopped_processes(store: Store) -> list[tuple[str, str]]:
    """Return a sentence on each stopped process, and what to do."""
    dispatcher = stopped_dispatcher(store.folder)
    return ([dispatcher] if dispatcher else []) + [*stopped_runners(store)]


def stopped_dispatcher(folder: Path) -> tuple[str, str] | None:
    """Return a sentence on the dispatcher if it is stopped, and what to do."""
    with contextlib.suppress(OSError):  # a disk that is full, or cannot be written
        dispatcher = find_dispatcher(folder)
        if dispatcher and is_stopped(dispatcher):
            pid = dispatcher.pid
            return (
                f"The dispatcher (pid {pid}) is stopped and starts no job.",
                f"Run kill -CONT {pid}; or kill -KILL {pid}, which loses no job.",
            )
    return None


def stopped_runners(store: Store) -> Iterator[tuple[str, str]]:
    """Yield a sentence on each stopped runner of a job, and what to do."""
    for job in store.active():
        if job.runner and is_stopped(job.runner):
            pid = job.runner.pid
            yield (
                f"The runner of job {job.label} (pid {pid}) is stopped and does not end it.",
                f"Run kill -CONT {pid}; or kill -KILL {pid}, which ends the job.",
            )
