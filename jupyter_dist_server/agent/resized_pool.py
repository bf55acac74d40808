"""A pool with more or fewer ranks than before, of which those with the first numbers go on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..common.protocol.agents.agent_messages import PlacedRank
from ..common.protocol.pool_file import PoolFile
from ..common.protocol.pool_record import RankRecord


def resized(pool: PoolFile, ranks: Sequence[PlacedRank]) -> PoolFile:
    """Return the description of a pool on one node that has these ranks."""
    known = pool.record.ranks[: len(ranks)]
    new = [
        RankRecord(rank, rank, ranks[rank].device, ranks[rank].gpu)
        for rank in range(len(known), len(ranks))
    ]
    record = msgspec.structs.replace(pool.record, world_size=len(ranks), ranks=[*known, *new])
    return msgspec.structs.replace(
        pool,
        world_size=len(ranks),
        ranks=[*pool.ranks[: len(known)], *ranks[len(known) :]],
        record=record,
    )
