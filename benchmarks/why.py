"""How long it takes to find out why ranks wait: a real client, and ranks that only answer."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.client.ranks.gather_evidence import gather_evidence
from jupyter_dist_server.verdicts.explain_hang import explain_hang

from .fanout import echoing

SIZES = (8, 64, 128)


def measure(sizes: Sequence[int] = SIZES, looks: int = 5) -> dict[int, float]:
    return {ranks: asyncio.run(_measure_one(ranks, looks)) for ranks in sizes}


async def _measure_one(ranks: int, looks: int) -> float:
    async with echoing(ranks) as client:
        await _look(client)
        return 1e3 * statistics.median([await _look(client) for _ in range(looks)])


async def _look(client: PoolClient) -> float:
    begun = time.perf_counter()
    verdict = explain_hang(await gather_evidence(client, []))
    assert verdict and verdict.ranks == [1], verdict
    return time.perf_counter() - begun
