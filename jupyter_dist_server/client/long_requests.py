"""Requests that ranks may take long to answer: they copy values, or look at all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..common.protocol.jupyter_messages import Message
from ..common.protocol.ranks.profile_messages import ProfileRequest, RankProfile
from ..common.protocol.ranks.rank_messages import RankRequest
from .pool_client import PoolClient
from .ranks.rank_connection import read_replies_or_why


async def ask_at_length(
    client: PoolClient,
    request: RankRequest,
    ranks: Sequence[int],
    *,
    buffers: Sequence[Any] = (),
) -> dict[int, Message]:
    """Ask ranks, and wait however long they compute; those that die are left out.

    `buffers` is binary data that goes with the question, uncopied. Raises `DistError` if a rank
    is stopped.
    """
    question = client.ask(request.kind, request.content, ranks, buffers=buffers, timeout=None)
    asking = asyncio.create_task(question)
    try:
        while not (await asyncio.wait({asking}, timeout=2.0))[0]:
            if stopped := client.link.stopped(ranks):
                raise await client.link.rank_silent(stopped)
        return asking.result()
    finally:
        asking.cancel()


async def profiles_of(
    client: PoolClient, ranks: Sequence[int]
) -> tuple[dict[int, RankProfile], dict[int, bytes]]:
    """Return profiles and traces of the last profiled cell, by rank; dead ranks are left out.

    Traces are JSON, compressed with gzip. Raises `DistError` if a rank is stopped.
    """
    living = [rank for rank in ranks if rank not in client.dead]
    messages = await ask_at_length(client, ProfileRequest(), living)
    traces = {
        rank: bytes(message["buffers"][0])
        for rank, message in messages.items()
        if message["buffers"] and len(message["buffers"][0])
    }
    return read_replies_or_why(messages, RankProfile), traces
