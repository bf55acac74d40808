"""Saying that the dispatcher is stopped, to whoever waits for it."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from ...jobs.launch.dispatcher_lock import stopped


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


class StoppedNotice:
    """Says on standard error that the dispatcher is stopped; of each dispatcher once.

    Parameters
    ----------
    folder : Path
        The folder of the queue.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._said: tuple[str, str] | None = None

    def look(self) -> None:
        """Say it if it is so."""
        found = stopped_dispatcher(self._folder)
        if found and found != self._said:
            print("jdist:", *found, file=sys.stderr, flush=True)
        self._said = found
