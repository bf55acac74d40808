"""Several clients of one pool: in turn, in the same order on all ranks, and nobody starves."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from jupyter_dist_server.client.cell_execution import Execution
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.notebook.cells.cell_wait import evidence_on
from jupyter_dist_server.notebook.loop_thread import LoopThread
from jupyter_dist_server.notebook.output.cell_outcome import CellInterrupted
from jupyter_dist_server.notebook.transfer_progress import mover
from jupyter_dist_server.verdicts.explain_hang import explain

from ..pool_driver import client_of, request, running
from ..server_driver import Server
from ..waiting import PATIENCE, wait_for

CELLS = 200
REDUCE = "t = torch.ones(1)\ndist.all_reduce(t)\nassert t.item() == world_size"
OTHER_CLIENT = """
import asyncio, pathlib, sys
from jupyter_dist_server.client.pool_client import PoolClient
async def main():
    client = PoolClient(pathlib.Path(sys.argv[1]))
    await client.connect()
    code = "print('in')\\nimport time\\ntime.sleep(1)"
    await client.execute(code, [0, 1], lambda *_: print("in", flush=True))
asyncio.run(main())
"""


async def test_two_clients_as_fast_as_they_can(tmp_path: Path) -> None:
    order: list[int] = []

    async def fire(client: PoolClient, number: int) -> None:
        for _ in range(CELLS):
            replies = await client.execute(REDUCE, [0, 1], lambda *_: None)
            assert {reply.status for reply in replies.values()} == {"ok"}, replies
            order.append(number)

    async with (
        running(request(tmp_path)) as pool,
        client_of(pool) as one,
        client_of(pool) as two,
    ):
        await asyncio.gather(fire(one, 1), fire(two, 2))
    assert sorted(order) == [1] * CELLS + [2] * CELLS
    same = sum(first == second for first, second in pairwise(order))
    # A strict alternation is not promised: who asks late, on a busy machine, is passed once more.
    assert same < CELLS, "nobody waits for the other one's end"


async def test_a_client_alone_requests_the_lock_once(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        said: list[object] = []
        send = client.link.send
        client.link.lock._ask = lambda do: (said.append(do), send(do))[1]
        for _ in range(20):
            await client.execute("1", [0, 1], lambda *_: None)
        assert [type(message).__name__ for message in said] == ["AcquireLock"]


async def test_cells_of_one_client_share_the_lock(tmp_path: Path) -> None:
    async with (
        running(request(tmp_path)) as pool,
        client_of(pool) as one,
        client_of(pool) as two,
    ):
        cells = [one.execute("dist.barrier()", [rank], lambda *_: None) for rank in (0, 1)]
        other = two.execute(REDUCE, [0, 1], lambda *_: None)
        for replies in await asyncio.gather(*cells, other):
            assert {reply.status for reply in replies.values()} == {"ok"}


async def test_a_killed_client_releases_the_lock(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool, client_of(pool) as client:
        command = [sys.executable, "-c", OTHER_CLIENT, pool.record.folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
            assert other.stdout
            await asyncio.to_thread(other.stdout.readline)
            mine = asyncio.create_task(client.execute(REDUCE, [0, 1], lambda *_: None))
            other.kill()
            replies = await asyncio.wait_for(mine, PATIENCE)
        assert {reply.status for reply in replies.values()} == {"ok"}


async def test_a_cell_that_waits_for_the_lock_is_cancelled_at_once(tmp_path: Path) -> None:
    async with (
        running(request(tmp_path)) as pool,
        client_of(pool) as one,
        client_of(pool) as two,
    ):
        begun: set[int] = set()
        code = "print('in')\nimport time\ntime.sleep(600)"
        executions: list[Execution] = []
        first = asyncio.create_task(
            one.execute(code, [0, 1], lambda rank, *_: begun.add(rank), started=executions.append)
        )
        await asyncio.to_thread(wait_for, lambda: begun == {0, 1}, "both ranks to begin")
        second = asyncio.create_task(
            two.execute("mark = 1", [0, 1], lambda *_: None, started=executions.append)
        )
        while len(executions) < 2:
            await asyncio.sleep(0)
        two.stop(executions[1])
        replies = await asyncio.wait_for(second, PATIENCE)
        assert {reply.status for reply in replies.values()} == {"aborted"}
        assert not first.done()
        one.stop(executions[0])
        assert {reply.status for reply in (await first).values()} == {"error"}


def test_a_notebook_and_a_tool_that_uses_rest(server: Server) -> None:
    notebook = server.notebook()
    notebook.ok("%load_ext jupyter_dist_server")
    notebook.ok("%dist_init -n 2")
    path = f"jupyter-dist/pools/{server.pools()[0]['id']}/execute"
    answers: list[set[str]] = []

    def use_rest() -> None:
        for _ in range(30):
            ranks = server.api("POST", path, {"code": REDUCE})["ranks"]
            answers.append({said["status"] for said in ranks.values()})

    tool = threading.Thread(target=use_rest)
    tool.start()
    for _ in range(30):
        notebook.ok(f"%%distributed\n{REDUCE}")
    tool.join(PATIENCE)
    assert answers == [{"ok"}] * 30
    notebook.close()


@pytest.mark.usefixtures("interruptible")
def test_a_stopped_pull_does_not_wait_for_a_cell_of_another_notebook(tmp_path: Path) -> None:
    """It waited for the lock, which it needs to re-create the group, without a limit."""
    loop, ended = LoopThread(), asyncio.Event()
    started: Future[tuple[PoolClient, PoolClient]] = Future()

    async def live() -> None:
        async with (
            running(request(tmp_path)) as pool,
            client_of(pool) as ours,
            client_of(pool) as other,
        ):
            await other.link.lock.acquire(asyncio.Event())
            started.set_result((ours, other))
            await ended.wait()

    async def stop_once_it_waits(client: PoolClient) -> None:
        while not (await explain(partial(evidence_on, client)))[0]:
            await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    life = loop.submit(live())
    try:
        ours, other = started.result(PATIENCE)
        loop.submit(stop_once_it_waits(ours))
        later = "will be re-created when all ranks are running and idle"
        with pytest.raises(CellInterrupted, match=later):
            mover(ours, loop).pull("dist.all_reduce(torch.ones(1))", [0])
        loop.call(other.link.lock.release)
        replies = loop.run(ours.execute(REDUCE, [0, 1], lambda *_: None))
        assert {reply.status for reply in replies.values()} == {"ok"}, replies
    finally:
        loop.call(ended.set)
        life.result(PATIENCE)
