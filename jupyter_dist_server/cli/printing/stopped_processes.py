"""Saying that a process of the queue is stopped, to whoever waits for it."""

from __future__ import annotations

import sys

from ...jobs.stopped_processes import stopped_processes
from ...jobs.store.store import Store


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
        found = stopped_processes(self._store)
        for told in found:
            if told not in self._said:
                print("jdist:", *told, file=sys.stderr, flush=True)
        self._said = found
