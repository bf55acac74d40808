"""Find what several ranks show alike: N sequences in, one sequence of (ranks, item) out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

WINDOW = 0.15
"""Seconds for which an item waits for the same item of other ranks."""


@dataclass
class Item:
    """One thing that a rank showed: a line, or rich output. Equal keys are alike."""

    key: tuple[str, str]
    payload: Any
    arrived: float


class Aligner:
    """Queues of items, one per rank.

    Each rank's order is kept. Counting what lies ahead in each queue makes a step's cost depend on
    the number of ranks only.
    """

    def __init__(self, ranks: Iterable[int]) -> None:
        self._queues: dict[int, deque[Item]] = {rank: deque() for rank in ranks}
        self._ahead: dict[int, Counter[tuple[str, str]]] = {r: Counter() for r in self._queues}
        self._running = set(self._queues)

    def push(self, rank: int, item: Item) -> None:
        """Append what a rank showed."""
        self._queues[rank].append(item)
        self._ahead[rank][item.key] += 1

    def waiting(self, rank: int) -> Iterable[Item]:
        """Return the items of a rank that are not out yet."""
        return self._queues[rank]

    def finish(self, rank: int) -> None:
        """Note that nothing more comes from a rank: nobody needs to wait for it."""
        self._running.discard(rank)

    def clear(self, rank: int) -> None:
        """Drop what a rank showed."""
        self._queues[rank].clear()
        self._ahead[rank].clear()

    def next_time(self) -> float | None:
        """Return when the first item will have waited long enough."""
        return min((q[0].arrived + WINDOW for q in self._queues.values() if q), default=None)

    def pop(self, now: float) -> tuple[list[int], Item] | None:
        """Return the next item and its ranks; `None` if there is none, or all had better wait."""
        group = self._next_group(now)
        if not group:
            return None
        item = self._queues[group[0]][0]
        for rank in group:
            self._queues[rank].popleft()
            self._ahead[rank][item.key] -= 1
            if not self._ahead[rank][item.key]:
                del self._ahead[rank][item.key]
        return group, item

    def _next_group(self, now: float) -> list[int]:
        groups: dict[tuple[str, str], list[int]] = {}
        for rank, queue in self._queues.items():
            if queue:
                groups.setdefault(queue[0].key, []).append(rank)
        silent = any(not self._queues[rank] for rank in self._running)
        ready = []
        for key, group in groups.items():
            oldest = min(self._queues[rank][0].arrived for rank in group)
            if silent and now < oldest + WINDOW:
                continue
            ready.append(group)
            # If another rank will come to this very item, what it has before that goes first.
            others = (rank for rank in self._queues if rank not in group)
            if not any(key in self._ahead[rank] for rank in others):
                return group
        return ready[0] if ready else []
