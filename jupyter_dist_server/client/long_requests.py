"""Questions that take ranks as long as they take: they copy values, or look at all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..common.protocol.jupyter_messages import Message
from ..common.protocol.ranks.rank_messages import RankRequest
from .pool_client import PoolClient

_LOOK = 2.0
"""Seconds after which it is looked whether a rank that does not reply is stopped."""


async def ask_at_length(
    client: PoolClient,
    request: RankRequest,
    ranks: Sequence[int],
    *,
    buffers: Sequence[Any] = (),
) -> dict[int, Message]:
    """Ask ranks, and wait however long they compute, but not for one that is stopped.

    Parameters
    ----------
    client : PoolClient
        Connected.
    request : RankRequest
        The question.
    ranks : sequence of int
        Whom to ask.
    buffers : sequence
        Binary data that goes with the question, uncopied.

    Returns
    -------
    dict
        Replies by rank, without the ranks that died.

    Raises
    ------
    DistError
        If a rank is stopped.
    """
    question = client.ask(request.kind, request.content, ranks, buffers=buffers, timeout=None)
    asking = asyncio.create_task(question)
    try:
        while not (await asyncio.wait({asking}, timeout=_LOOK))[0]:
            if stopped := client.link.stopped(ranks):
                raise await client.link.rank_silent(stopped)
        return asking.result()
    finally:
        asking.cancel()
