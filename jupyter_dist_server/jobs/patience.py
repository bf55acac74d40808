"""Who could start and does not: a process that was stopped, or hangs, holds up nobody for long."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from time import monotonic

from .board import Posted

SECONDS = 5.0
"""For which GPUs are left to an entry of somebody else that could start."""


class Patience:
    """Remembers which boards have an entry that could start, and passes over those that do not."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}
        """By the board and its change."""

    def who_counts(self, boards: Iterable[Posted]) -> list[Posted]:
        """Return the boards without those that were passed over and have not changed since."""
        now = monotonic()
        kept = list(boards)
        there = {(board.file, board.changed) for board in kept}
        self._since = {key: since for key, since in self._since.items() if key in there}
        late = {key for key, since in self._since.items() if now - since >= SECONDS}
        return [board for board in kept if (board.file, board.changed) not in late]

    def note(self, boards: Iterable[Posted], starts: Collection[str]) -> float | None:
        """Note which entries of others could start now; return when to look again, if so.

        Parameters
        ----------
        boards : iterable of Posted
            Those that count.
        starts : collection of str
            Ids of the entries that could start.
        """
        now = monotonic()
        due = {id.partition(" ")[0] for id in starts if " " in id}
        wait = math.inf
        for board in boards:
            key = board.file, board.changed
            if board.file not in due:
                self._since.pop(key, None)
            else:
                wait = min(wait, self._since.setdefault(key, now) + SECONDS - now)
        return None if wait == math.inf else max(0.0, wait)
