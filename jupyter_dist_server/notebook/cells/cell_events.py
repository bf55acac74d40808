"""What a cell's ranks show, on its way from the client's thread to the kernel's main thread."""

from __future__ import annotations

import queue
import threading
from collections import deque

from ...common.protocol.jupyter_messages import Content
from ..output.cell_outcome import as_shown
from ..output.late_output import LateOutput

LOOKED = "looked"
"""We have looked why ranks wait."""
ANSWERED = "answered"
"""The user has answered a rank's question."""

Event = tuple[int, str, Content]
"""Rank, message type, content."""


class CellEvents:
    """The events of one cell, taken until its end; `LateOutput` shows later ones below it."""

    def __init__(self, late: LateOutput, as_they_are: bool) -> None:
        self._late = late
        self._as_they_are = as_they_are  # errors of a quiet cell are shown when it ends
        self._over = False
        self._lock = threading.Lock()
        """Held while an event is taken: late output comes after the cell's."""
        self._waiting: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._quiet: deque[Event] = deque()
        self._spoken = False

    def hear(self, rank: int, kind: str, content: Content) -> None:
        """Take what a rank shows; runs in the client's thread."""
        if not self._as_they_are:
            kind, content = as_shown(kind, content)
        with self._lock:
            if self._over:
                self._late.show(rank, kind, content)
            else:
                self._hand_over(rank, kind, content)

    def _hand_over(self, rank: int, kind: str, content: Content) -> None:
        # Waking the main thread for each rank of a silent cell would be expensive.
        if kind == "finished" and content["status"] == "ok" and not self._spoken:
            self._quiet.append((rank, kind, content))
            return
        self._spoken = True
        self._hand_over_quiet()
        self._waiting.put((rank, kind, content))

    def _hand_over_quiet(self) -> None:
        while self._quiet:
            self._waiting.put(self._quiet.popleft())

    def note(self, kind: str) -> None:
        """Add an event that comes from no rank: `LOOKED` or `ANSWERED`."""
        self._waiting.put((0, kind, {}))

    def end(self, _: object) -> None:
        """Note that all ranks are done."""
        with self._lock:
            self._hand_over_quiet()
        self._waiting.put(None)

    def next(self, seconds: float | None) -> Event | None:
        """Return the next event, `None` after the last; raise `queue.Empty` if none comes."""
        return self._waiting.get(timeout=seconds) if seconds != 0 else self._waiting.get_nowait()

    def leave_to_late_output(self) -> None:
        """Let `LateOutput` show what is left, and what comes later."""
        with self._lock:
            self._over = True
            while not self._waiting.empty():
                if (event := self._waiting.get()) and event[1] not in (LOOKED, ANSWERED):
                    self._late.show(*event)
