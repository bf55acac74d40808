"""Whether ranks go on: asked cheaply, before anybody looks for why they do not."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ...common.protocol.ranks.rank_messages import RankStatus


class Standstill:
    """Compares what ranks say of themselves with what they said before.

    Attributes
    ----------
    since : dict
        By rank, when it was first seen at the place where it is busy, in seconds since 1970.
    """

    def __init__(self) -> None:
        self.since: dict[int, float] = {}
        self._places: dict[int, tuple[object, ...]] = {}

    def is_seen(self, said: dict[int, RankStatus], living: Iterable[int]) -> bool:
        """Tell whether a living rank is silent, or busy at the same place as at the last look.

        The collectives that a rank has begun are counted: in a loop, the next one is another.
        """
        before, since = self._places, self.since
        self._places = {
            rank: (one.since, one.whereabouts, one.calls)
            for rank, one in said.items()
            if one.state == "busy"
        }
        same = {rank for rank, place in self._places.items() if before.get(rank) == place}
        now = time.time()
        self.since = {rank: since[rank] if rank in same else now for rank in self._places}
        return bool(same) or any(rank not in said for rank in living)
