"""A cell is cancelled at any moment, also at that of its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from jupyter_dist_server.pools.client import PoolClient
from jupyter_dist_server.pools.execution import Execution

from .test_pool import client_of, request, running

CELLS = 150


def test_an_interrupt_at_the_end_of_a_cell_ends_no_rank(tmp_path: Path) -> None:
    async def check() -> None:
        async with running(request(tmp_path)) as pool, client_of(pool) as client:
            ends: set[str] = set()
            for number in range(CELLS):
                ends |= await run_and_cancel(client, 1e-5 * number)
            assert client.dead == {}
            assert ends == {"ok", "error"}, "no cancel came before, or none after a cell's end"

    async def run_and_cancel(client: PoolClient, delay: float) -> set[str]:
        def cancel_soon(execution: Execution) -> None:
            asyncio.get_running_loop().call_later(delay, client.cancel, execution)

        replies = await client.execute("pass", [0, 1], lambda *_: None, started=cancel_soon)
        return {"error" if r.status == "aborted" else r.status for r in replies.values()}

    asyncio.run(check())
