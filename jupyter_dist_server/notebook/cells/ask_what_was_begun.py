"""Asks the others what they had begun when gloo ended a rank, as it got more than it expected."""

from __future__ import annotations

from collections.abc import Mapping

from ...client.cell_execution import Reply
from ...client.pool_client import PoolClient
from ...client.ranks.gather_evidence import gather_evidence
from ...common.processes.process_ref import OTHER_SIZE
from ...verdicts.match_waits import last_collectives


def sizes_differ(replies: Mapping[int, Reply]) -> bool:
    """Tell whether a rank has died of that."""
    return any(
        reply.status == "dead" and OTHER_SIZE in reply.content["evalue"]
        for reply in replies.values()
    )


async def explain_sizes(client: PoolClient) -> list[str]:
    """Return a sentence on what they had begun, if that is known."""
    said = last_collectives(await gather_evidence(client, []))
    return [said] if said else []
