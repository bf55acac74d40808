"""Which boards count: not those of stopped or hung processes, nor all that false ones say."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from time import monotonic

from .board import Posted
from .plan import Plan

TURN = 5.0
"""Seconds for which GPUs are left to somebody else's entry that could start."""
KEPT_FOR = 3600.0
"""Seconds for which GPUs stay idle for somebody else's head whose start is unknown."""


class Trust:
    """Remembers how long we have waited for others, by what we have seen ourselves."""

    def __init__(self) -> None:
        self._due: dict[tuple[str, int], float] = {}
        """Since when an entry of a board could start and has not, by the board and its change."""
        self._kept: dict[str, float] = {}
        """Since when GPUs are kept for an entry of a board."""
        self._heads: dict[int, str | None] = {}
        """The entry of each user that was the head when we last looked."""

    def who_counts(self, boards: Iterable[Posted]) -> list[Posted]:
        """Return the boards without those that were passed over and have not changed since.

        That an entry is the head is believed of a user whom we have not seen before, and otherwise
        if it was the head of a plan of ours: a user who calls one entry after the other the head
        comes first once. It is no longer believed after GPUs were kept for it for long.
        """
        now = monotonic()
        there = list(boards)
        keys = {(board.file, board.changed) for board in there}
        self._due = {key: since for key, since in self._due.items() if key in keys}
        heads = {board.head for board in there}
        self._kept = {id: since for id, since in self._kept.items() if id in heads}
        late = {key for key, since in self._due.items() if now - since >= TURN}
        return [
            replace(board, may_be_head=self._believes(board, now))
            for board in there
            if (board.file, board.changed) not in late
        ]

    def _believes(self, board: Posted, now: float) -> bool:
        head = board.head
        if head is None:
            return False
        if now - self._kept.get(head, now) >= KEPT_FOR:
            return False
        return self._heads.setdefault(board.uid, head) == head

    def note(self, boards: Iterable[Posted], wanted: Plan) -> float | None:
        """Note what a plan leaves to the owners of boards; return when to look again, if at all."""
        now = monotonic()
        due = {id.partition(" ")[0] for id in wanted.starts if " " in id}
        waits = [math.inf]
        for board in boards:
            key = board.file, board.changed
            if board.file in due:
                waits.append(self._due.setdefault(key, now) + TURN - now)
            else:
                self._due.pop(key, None)
            if wanted.head and wanted.head.id.partition(" ")[0] == board.file:
                self._heads[board.uid] = wanted.head.id
        if (head := wanted.head) and wanted.kept and not head.certain and " " in head.id:
            waits.append(self._kept.setdefault(head.id, now) + KEPT_FOR - now)
        return None if min(waits) == math.inf else max(0.0, min(waits))
