"""Asks ranks why a cell has failed, where its errors do not tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ...client.cell_execution import Reply
from ...client.pool_client import PoolClient
from ...client.ranks.gather_evidence import gather_evidence
from ...client.values.ask_variables import memory_of
from ...common.background_tasks import within
from ...common.errors import DistError
from ...common.patience import patience
from ...common.processes.process_ref import OTHER_SIZE
from ...verdicts.match_waits import last_collectives
from ...verdicts.memory_sentences import is_out_of_memory, out_of_memory_sentences

_LOG = logging.getLogger(__name__)


async def explain_failure(client: PoolClient, replies: Mapping[int, Reply]) -> list[str]:
    """Return sentences on which variables hold memory, or which collectives do not match."""
    errors = {r: reply.content for r, reply in replies.items() if reply.status == "error"}
    no_memory = {
        rank: error["evalue"]
        for rank, error in errors.items()
        if is_out_of_memory(error["ename"], error["evalue"])
    }
    if no_memory:
        try:
            told = await within(memory_of(client, list(no_memory)), patience.busy_answer)
        except (DistError, asyncio.TimeoutError) as error:
            _LOG.warning("The ranks did not tell what holds memory.", exc_info=error)
            return []
        return list(out_of_memory_sentences(no_memory, told, client.nodes))
    deaths = [reply.content["evalue"] for reply in replies.values() if reply.status == "dead"]
    if not any(OTHER_SIZE in why for why in deaths):
        return []
    # gloo has ended a rank that got more than it expected: the others know what they had begun.
    said = last_collectives(await gather_evidence(client, []))
    return [said] if said else []
