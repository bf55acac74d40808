"""A cell is cancelled at any moment, also at that of its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

from jupyter_dist_server.client.cell_execution import Execution
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.processes.process_ref import POOL_ENDED
from jupyter_dist_server.common.protocol.agents.agent_messages import NoteLate

from ..pool_driver import client_of, request, running
from ..waiting import PATIENCE

CELLS = 150
STUCK = """import ctypes
print("in", flush=True)
if rank == 2:
    mutex = ctypes.create_string_buffer(64)
    [ctypes.PyDLL(None).pthread_mutex_lock(mutex) for _ in "12"]
dist.all_reduce(torch.ones(1))
"""
"""Rank 2 waits in C with Python's lock held; the others wait for it."""


async def test_an_interrupt_at_the_end_of_a_cell_ends_no_rank(tmp_path: Path) -> None:
    async def run_and_cancel(client: PoolClient, delay: float) -> set[str]:
        def cancel_soon(execution: Execution) -> None:
            asyncio.get_running_loop().call_later(delay, client.stop, execution)

        replies = await client.execute("pass", [0, 1], lambda *_: None, started=cancel_soon)
        return {"error" if r.status == "aborted" else r.status for r in replies.values()}

    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        ends: set[str] = set()
        for number in range(CELLS):
            ends |= await run_and_cancel(client, 1e-5 * number)
        delay = 1e-3
        while "ok" not in ends and delay < PATIENCE:  # a cell takes longer on a busy machine
            delay *= 2
            ends |= await run_and_cancel(client, delay)
        assert client.dead == {}
        assert ends == {"ok", "error"}, "no cancel came before, or none after a cell's end"


async def test_an_interrupt_from_outside_frees_those_that_wait_for_a_stuck_rank(
    tmp_path: Path,
) -> None:
    async with running(request(tmp_path, num_ranks=3)) as pool, client_of(pool) as client:
        waiting = asyncio.Event()
        seen: set[int] = set()

        def heard(rank: int, *_: object) -> None:
            seen.add(rank)
            if seen >= {0, 1}:  # rank 2 may take the lock before its output is on its way
                waiting.set()

        running_cell = asyncio.create_task(client.execute(STUCK, range(3), heard))
        await asyncio.wait_for(waiting.wait(), PATIENCE)
        while 2 in await client.status(timeout=5):
            pass  # until it has Python's lock, it would hear an interrupt
        client.link.send(NoteLate([2], client.link.generation + 1))  # of ranks that came later
        assert await client.link.answers()
        assert not any(execution.stopping for execution in client.executions)
        await pool.commands.interrupt()
        idle: dict[int, str] = {}
        while idle != {0: "idle", 1: "idle"}:  # they may still render a traceback
            status = await client.status(timeout=2)
            idle = {rank: said.state for rank, said in status.items()}
        replies = await asyncio.wait_for(running_cell, PATIENCE)
        assert [replies[rank].status for rank in range(3)] == ["error", "error", "late"]


async def test_a_cell_of_a_client_that_disconnects_ends_for_it(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as other:
        async with client_of(pool) as client:
            started = asyncio.Event()
            work = client.execute(
                "import time\nprint('in')\ntime.sleep(600)", [0, 1], lambda *_: started.set()
            )
            cell = asyncio.create_task(work)
            await asyncio.wait_for(started.wait(), PATIENCE)
        replies = await asyncio.wait_for(cell, PATIENCE)
        assert {reply.content["evalue"] for reply in replies.values()} == {POOL_ENDED}
        assert await other.stop_all() == []
