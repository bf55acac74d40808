"""What the variables of ranks hold, as the ranks tell it between cells."""

from __future__ import annotations

from collections.abc import Sequence

from ..common.errors import DistError
from ..common.protocol.memory_messages import (
    EstimateReply,
    EstimateRequest,
    MemoryReply,
    MemoryRequest,
)
from ..common.protocol.variable_messages import VariablesReply, VariablesRequest
from ..common.rank_specs import name_ranks
from .client import PoolClient
from .long_question import ask_at_length
from .rank_connection import read_reply

_UNREADABLE = VariablesReply(status="failed", why="its reply is malformed, see the log")


async def variables_of(
    client: PoolClient, names: Sequence[str], ranks: Sequence[int], *, only_trained: bool = False
) -> dict[int, VariablesReply]:
    """Ask ranks what variables hold; none of them waits for another one.

    Parameters
    ----------
    client : PoolClient
        Connected.
    names : sequence of str
        Names or expressions; if there are none, all variables of the user.
    ranks : sequence of int
        Whom to ask.
    only_trained : bool
        Whether only modules and optimizers are wanted.

    Raises
    ------
    DistError
        If a rank died, is stopped, runs a cell, or does not have a variable.
    """
    request = VariablesRequest(list(names), only_trained)
    messages = await ask_at_length(client, request, [r for r in ranks if r not in client.dead])
    said = {
        rank: read_reply(rank, message, VariablesReply) or _UNREADABLE
        for rank, message in messages.items()
    }
    if gone := [rank for rank in ranks if rank not in said]:
        them = "it" if len(gone) == 1 else "them"
        raise DistError(
            "rank_dead",
            f"{name_ranks(gone).capitalize()} died: {client.dead.get(gone[0], 'the pool ended')}.",
            f"Replace {them} with %dist_restart, or choose other ranks with --ranks.",
        )
    for status in ("missing", "failed", "busy"):
        whys: dict[str, list[int]] = {}
        for rank, reply in said.items():
            if reply.status == status:
                whys.setdefault(reply.why, []).append(rank)
        for why, those in whys.items():
            raise _refused(status, why, those)
    return said


async def memory_of(client: PoolClient, ranks: Sequence[int]) -> dict[int, MemoryReply]:
    """Ask ranks what memory they use; those that died, or fail to tell, are left out."""
    living = [rank for rank in ranks if rank not in client.dead]
    messages = await ask_at_length(client, MemoryRequest(), living)
    said = {rank: read_reply(rank, message, MemoryReply) for rank, message in messages.items()}
    return {rank: reply for rank, reply in said.items() if reply is not None}


async def estimate_of(client: PoolClient, request: EstimateRequest, rank: int) -> EstimateReply:
    """Ask one rank how much memory a training step takes.

    Raises
    ------
    DistError
        If it cannot tell.
    """
    messages = await ask_at_length(client, request, [rank])
    reply = read_reply(rank, messages[rank], EstimateReply) if messages else None
    if reply is None or reply.failure:
        why = reply.failure if reply else client.dead.get(rank, "it does not answer")
        raise DistError(
            "no_estimate",
            f"Rank {rank} cannot estimate the memory of a step: {why}.",
            "The step that is estimated is model(batch), backward and optimizer.step().",
        )
    return reply


def _refused(status: str, why: str, ranks: list[int]) -> DistError:
    one, where = len(ranks) == 1, name_ranks(ranks).capitalize()
    if status == "missing":
        return DistError(
            "value_missing",
            f"{where} {'has' if one else 'have'} no `{why}`.",
            "Run the cell that defines it on these ranks first.",
        )
    if status == "busy":
        return DistError(
            "rank_busy",
            f"{where} {'runs' if one else 'run'} a cell; variables are compared between cells.",
            "Wait for its end, or stop it with %dist_interrupt, and repeat the command.",
        )
    return DistError("value_failed", f"The variables cannot be read on {where.lower()}: {why}.")
