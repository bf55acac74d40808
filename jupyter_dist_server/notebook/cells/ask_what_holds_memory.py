"""Asks ranks on which a cell ran out of memory what holds it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ...client.cell_execution import Reply
from ...client.pool_client import PoolClient
from ...client.values.ask_variables import memory_of
from ...common.errors import DistError
from ...verdicts.memory_sentences import is_out_of_memory, out_of_memory_sentences

_LOG = logging.getLogger(__name__)

_PATIENCE = 5.0
"""Seconds: the cell has failed, and its error is to be shown."""


def ran_out(replies: Mapping[int, Reply]) -> dict[int, str]:
    """Return the ranks whose cell failed as it could get no memory, with the text of the error."""
    errors = {r: reply.content for r, reply in replies.items() if reply.status == "error"}
    return {
        rank: error["evalue"]
        for rank, error in errors.items()
        if is_out_of_memory(error["ename"], error["evalue"])
    }


async def explain_out_of_memory(client: PoolClient, errors: Mapping[int, str]) -> list[str]:
    """Return sentences on what was asked for, and which variables hold memory."""
    try:
        said = await asyncio.wait_for(memory_of(client, list(errors)), _PATIENCE)
    except (DistError, asyncio.TimeoutError) as error:
        _LOG.warning("It could not be found out what holds memory.", exc_info=error)
        return []
    return list(out_of_memory_sentences(errors, said, client.nodes))
