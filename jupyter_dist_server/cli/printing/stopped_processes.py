"""Saying that a process of the queue is stopped, to whoever waits for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from ...common.processes.process_ref import is_stopped
from ...jobs.launch.dispatcher_lock import stopped
from ...jobs.store.store import Store


def stopped_dispatcher(folder: Path) -> tuple[str, str] | None:
    """Return that the dispatcher is stopped (SIGSTOP), and what to do; `None` if it is not."""
    process = None
    with contextlib.suppress(OSError):  # a disk that is full, or cannot be written
        process = stopped(folder)
    if process is None:
        return None
    return (
        f"The dispatcher (pid {process.pid}) is stopped and starts no job.",
        f"Run kill -CONT {process.pid}; or kill -KILL {process.pid}, which loses no job.",
    )


def stopped_runners(store: Store) -> Iterator[tuple[str, str]]:
    """Yield which runners of jobs are stopped (SIGSTOP), and what to do."""
    for job in store.active():
        if job.runner and is_stopped(job.runner):
            pid = job.runner.pid
            yield (
                f"The runner of job {job.label} (pid {pid}) is stopped and does not end it.",
                f"Run kill -CONT {pid}; or kill -KILL {pid}, which ends the job.",
            )


class StoppedNotice:
    """Says on standard error which processes are stopped; of each one once.

    Parameters
    ----------
    store : Store
        The queue.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._said: list[tuple[str, str]] = []

    def look(self) -> None:
        """Say it if it is so."""
        dispatcher = stopped_dispatcher(self._store.folder)
        found = ([dispatcher] if dispatcher else []) + [*stopped_runners(self._store)]
        for told in found:
            if told not in self._said:
                print("jdist:", *told, file=sys.stderr, flush=True)
        self._said = found
