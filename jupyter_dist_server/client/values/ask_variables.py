"""Asks ranks, between cells, what their variables hold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...common.errors import DistError
from ...common.patience import patience
from ...common.processes.process_ref import POOL_ENDED
from ...common.protocol.ranks.memory_messages import (
    EstimateReply,
    EstimateRequest,
    MemoryReply,
    MemoryRequest,
)
from ...common.protocol.ranks.variable_messages import VariablesReply, VariablesRequest
from ...common.rank_specs import name_ranks
from ..long_requests import ask_at_length
from ..pool_client import PoolClient
from ..ranks.rank_connection import (
    RankConnection,
    rank_died,
    read_replies,
    read_replies_or_why,
    read_reply,
    replies_of,
)
from .pack_variables import value_missing


async def variables_of(
    client: PoolClient, names: Sequence[str], ranks: Sequence[int], *, only_trained: bool = False
) -> dict[int, VariablesReply]:
    """Ask ranks what variables hold, given by `names` or expressions; without any, all variables.

    Raises `DistError` if a rank died, is stopped, runs a cell, or does not have a variable.
    """
    request = VariablesRequest(list(names), only_trained)
    messages = await ask_at_length(client, request, [r for r in ranks if r not in client.dead])
    said = read_replies_or_why(messages, VariablesReply)
    if gone := [rank for rank in ranks if rank not in said]:
        raise rank_died(gone, client.dead.get(gone[0], POOL_ENDED))
    _check(said, ("missing", "failed", "busy"))
    return said


class Gathered(NamedTuple):
    """What ranks tell about their variables within a limited time."""

    said: dict[int, VariablesReply]
    busy: list[int]
    """Ranks that run a cell, or ran one meanwhile."""
    silent: list[int]


async def gather_variables(
    connection: RankConnection, request: VariablesRequest, ranks: Sequence[int], limit: float
) -> Gathered:
    """Ask ranks what variables hold; those that respond may compute for `limit` seconds.

    Raises `DistError` if a rank does not have a variable, cannot read it, or takes longer.
    """
    answers = connection.begin(request.kind, request.content, ranks)
    try:
        # A rank that is stopped, or in C code that holds the GIL, does not answer this either.
        there = await connection.status(timeout=patience.busy_answer, ranks=ranks)
        if waited_for := [answers[rank] for rank in there]:
            _, slow = await asyncio.wait(waited_for, timeout=limit)
            if slow:
                raise _too_slow([rank for rank in there if answers[rank] in slow], limit)
        messages = replies_of(answers)
    finally:
        for answer in answers.values():
            answer.cancel()
    # Reading the replies of many ranks takes long.
    said = await asyncio.to_thread(read_replies_or_why, messages, VariablesReply)
    _check(said, ("missing", "failed"))
    return Gathered(
        said={rank: reply for rank, reply in said.items() if reply.status == "ok"},
        busy=[rank for rank, reply in said.items() if reply.status == "busy"],
        silent=[rank for rank in ranks if rank not in said],
    )


def _check(said: Mapping[int, VariablesReply], statuses: Sequence[str]) -> None:
    """Raise the `DistError` for ranks that have one of these statuses."""
    for status in statuses:
        whys: dict[str, list[int]] = {}
        for rank, reply in said.items():
            if reply.status == status:
                whys.setdefault(reply.why, []).append(rank)
        for why, those in whys.items():
            raise _refused(status, why, those)


async def memory_of(client: PoolClient, ranks: Sequence[int]) -> dict[int, MemoryReply]:
    """Ask ranks what memory they use; those that died, or fail to tell, are left out."""
    living = [rank for rank in ranks if rank not in client.dead]
    return read_replies(await ask_at_length(client, MemoryRequest(), living), MemoryReply)


async def estimate_of(client: PoolClient, request: EstimateRequest, rank: int) -> EstimateReply:
    """Ask one rank how much memory a training step takes; raises `DistError` if it cannot tell."""
    messages = await ask_at_length(client, request, [rank])
    reply = read_reply(rank, messages[rank], EstimateReply) if messages else None
    if reply is None or reply.failure:
        why = reply.failure if reply else client.dead.get(rank, "it does not answer")
        raise DistError(
            "no_estimate",
            f"Rank {rank} cannot estimate the memory of a step: {why.rstrip('.')}.",
            "The step that is estimated is model(batch), backward and optimizer.step().",
        )
    return reply


def _too_slow(ranks: list[int], limit: float) -> DistError:
    where = name_ranks(sorted(ranks)).capitalize()
    return DistError(
        "variables_slow",
        f"{where} took more than {limit:g} s to read the variables.",
        "Name fewer ones, or use %dist_check in the notebook, which has no time limit.",
    )


def _refused(status: str, why: str, ranks: list[int]) -> DistError:
    one, where = len(ranks) == 1, name_ranks(ranks).capitalize()
    if status == "missing":
        return value_missing(why, ranks, field="names")
    if status == "busy":
        return DistError(
            "rank_busy",
            f"{where} {'runs' if one else 'run'} a cell; variables are compared between cells.",
            "Wait for its end, or stop it with %dist_interrupt, and repeat the command.",
        )
    return DistError(
        "value_failed",
        f"The variables cannot be read on {where.lower()}: {why}.",
        field="names",
    )
