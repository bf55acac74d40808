"""What the ranks of a pool are told so that it is parked or resumed, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..client.ranks.rank_connection import RankConnection
from ..common.background_tasks import any_of
from ..common.errors import DistError
from ..common.patience import patience
from ..common.protocol.agents.agent_messages import Parked
from ..common.protocol.ranks.park_messages import (
    ParkReply,
    ParkRequest,
    Step,
    UnloadReply,
    UnloadRequest,
)
from ..common.protocol.ranks.rank_messages import RankRequest, Reply
from .live_record import LiveRecord

_SLOWEST = 3e8
"""Bytes per second that are copied from or to GPUs at least."""


@dataclass(eq=False)
class ParkSteps:
    """Has the ranks of one pool take the steps."""

    _pool: LiveRecord

    def connection(self) -> RankConnection:
        """Return a connection to all ranks, not opened yet."""
        return RankConnection(Path(self._pool.record.folder), ("control", "shell"))

    async def unload(self, ranks: RankConnection, request: UnloadRequest) -> dict[int, UnloadReply]:
        """Have ranks get ready; name the models whose process group they have left."""
        limit = patience.driver
        everybody = range(ranks.world_size)
        replies = await self._ask(ranks, request, UnloadReply, everybody, limit)
        if wrapped := sorted(set().union(*(reply.wrapped for reply in replies.values()))):
            self._pool.set_notice(_wrapped_models(wrapped), True)
        for rank in everybody:
            if rank in self.dead:
                raise cannot_park(rank, "It has died.")
            if rank not in replies:
                raise cannot_park(rank, f"It did not answer within {limit:g} s.")
            if replies[rank].failure:
                raise cannot_park(rank, replies[rank].failure)
        return replies

    async def failed(
        self, ranks: RankConnection, step: Step, parked: Parked, besides: Collection[int] = ()
    ) -> dict[int, ParkReply]:
        """Have living ranks take a step; return what those say that failed."""
        asked = sorted(set(range(ranks.world_size)) - self.dead - set(besides))
        limit = patience.driver + parked.nbytes / _SLOWEST
        # One that is silent may take the step at any time, when its GPU is another pool's.
        silent = ParkReply(f"It did not answer within {limit:.0f} s.", is_lost=True)
        replies = dict.fromkeys(asked, silent)
        replies |= await self._ask(ranks, ParkRequest(step), ParkReply, asked, limit)
        replies |= dict.fromkeys(self.dead.intersection(asked), ParkReply("It has died.", True))
        return {rank: reply for rank, reply in replies.items() if reply.failure}

    async def _ask(
        self,
        ranks: RankConnection,
        request: RankRequest,
        form: type[Reply],
        asked: Collection[int],
        limit: float,
    ) -> dict[int, Reply]:
        """Ask ranks, and wait for those that do not die meanwhile."""
        asking = asyncio.ensure_future(ranks.request(request, form, asked, timeout=limit))
        try:
            while not asking.done():
                for rank in self.dead:
                    ranks.give_up(rank)
                news = self._pool.changed_since(self._pool.record.version, limit)
                await any_of(asyncio.wait([asking]), news)
            return asking.result()
        finally:
            asking.cancel()

    @property
    def dead(self) -> set[int]:
        """The ranks that have died."""
        return {rank.rank for rank in self._pool.record.ranks if rank.state == "dead"}


def _wrapped_models(names: Sequence[str]) -> str:
    return (
        f"Parking has ended the process group on NCCL: wrap {', '.join(names)} again, for example "
        f"{names[0]} = DistributedDataParallel({names[0]}.module)."
    )


def cannot_park(rank: int, why: str) -> DistError:
    """Return why a rank cannot be parked, as an error."""
    return DistError("cannot_park", f"Rank {rank} cannot be parked. {why}")
