"""Ends ranks: asks them first, then kills them and what they have left behind."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable

from ...common.background_tasks import within
from ...common.patience import patience
from ...common.processes.pool_processes import ended_now
from ...common.protocol.agents.agent_messages import RankState
from .rank_processes import left_behind, signal_rank


async def end_ranks(
    ending: list[RankState],
    pool_id: str,
    death: asyncio.Event,
    helpers: Callable[[], set[int]],
    *,
    by_all: bool,
) -> None:
    """End ranks of this node; whoever reaps them sets `death`. For the others, see `left_behind`.

    In all, this takes less than `patience.node`, which agents on other nodes have to end.
    """
    # Before a killed process ends, the driver frees what it had on its GPU.
    limits = {signal.SIGTERM: patience.cleanup, signal.SIGKILL: 2.5 * patience.cleanup}
    for number, limit in limits.items():
        for record in ending:
            signal_rank(record, number)
        with contextlib.suppress(asyncio.TimeoutError):
            await within(_all_dead(ending, death), limit)
    left = left_behind(ending, pool_id, by_all=by_all, spared=helpers())
    await ended_now(left, patience.cleanup)


async def _all_dead(ending: list[RankState], death: asyncio.Event) -> None:
    while any(record.pid and record.state != "dead" for record in ending):
        death.clear()
        await death.wait()
