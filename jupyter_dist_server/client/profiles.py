"""The profiles of the last cell that had one, as the ranks tell them when it has ended."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.protocol.ranks.profile_messages import ProfileRequest, RankProfile
from .long_requests import ask_at_length
from .pool_client import PoolClient
from .ranks.rank_connection import read_reply, why_no_reply


async def profiles_of(
    client: PoolClient, ranks: Sequence[int]
) -> tuple[dict[int, RankProfile], dict[int, bytes]]:
    """Ask ranks for their profiles; those that died are left out.

    Returns
    -------
    tuple
        Profiles by rank, and traces, which are JSON compressed with gzip.

    Raises
    ------
    DistError
        If a rank is stopped.
    """
    living = [rank for rank in ranks if rank not in client.dead]
    messages = await ask_at_length(client, ProfileRequest(), living)
    said = {
        rank: read_reply(rank, message, RankProfile)
        or RankProfile(status="failed", why=why_no_reply(message))
        for rank, message in messages.items()
    }
    traces = {
        rank: bytes(message["buffers"][0])
        for rank, message in messages.items()
        if message["buffers"] and len(message["buffers"][0])
    }
    return said, traces
