"""What ranks use, as their processes and they themselves tell it, and whose processes are whose."""

from __future__ import annotations

import asyncio
import getpass
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.client.ranks.debug_connection import DebugConnection
from jupyter_dist_server.client.ranks.watch_busy import rank_states
from jupyter_dist_server.common.protocol.pool_record import (
    GpuReference,
    PoolRecord,
    PoolState,
    RankRecord,
)
from jupyter_dist_server.common.protocol.sampler_messages import GpuProcess
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.reports.rank_usage import RankUsage, StoppedAt, Usage
from jupyter_dist_server.server.gpus.process_owners import Owner, with_owners

from ..pool_driver import WarmManager, request
from ..waiting import PATIENCE, wait_for

BUSY = """
import time
begun = time.monotonic()
while rank == 1 and time.monotonic() - begun < 120:
    pass
"""
WAITING = """import time
t = torch.ones(1)
if rank == 0:
    dist.all_reduce(t)
time.sleep(120)
"""
IN_STEP = """import time
group = dist.new_group([0, 1])
while True:
    dist.all_reduce(t, group=group)
    time.sleep(0.3 * rank)
"""
STUCK = "import ctypes; ctypes.PyDLL(None).pause() if rank == 1 else None"
"""Waits in C with Python's lock held, so that not even the control thread answers."""


async def news(usage: RankUsage, what: Callable[[], Any], timeout: float = PATIENCE) -> Any:
    """Wait for a look that found something."""
    changed = asyncio.Event()
    stop = usage.listen(changed.set)
    try:
        while not (found := what()):
            changed.clear()
            await asyncio.wait_for(changed.wait(), timeout)
        return found
    finally:
        stop()


async def check_waits(usage: RankUsage, pool: Pool, client: PoolClient) -> None:
    """See where ranks are that wait for each other, and since when."""

    def place(rank: int) -> tuple[int | None, str | None]:
        one = usage.latest[pool.record.id][rank]
        assert one
        return one.line, one.call

    def since(rank: int) -> Any:
        one = usage.latest[pool.record.id][rank]
        return one and one.waiting_since

    def count(rank: int) -> int | None:
        one = usage.latest[pool.record.id][rank]
        return one and one.calls

    begun = time.time()
    running = asyncio.create_task(client.execute(WAITING, [0, 1], lambda *_: None))
    waits = await news(usage, lambda: place(1) == (5, None) and since(0))
    assert begun < waits < time.time()
    assert (place(0), place(1), since(1)) == ((4, "all_reduce"), (5, None), None)
    assert (count(0), count(1)) == (1, None)
    await pool.commands.interrupt()
    client.group.break_up()  # at once: rank 0 may be in a collective
    await running
    await news(usage, lambda: place(0) == place(1) == (None, None) and since(0) is None)

    running = asyncio.create_task(client.execute(IN_STEP, [0, 1], lambda *_: None))
    first = await news(usage, lambda: place(0)[1] == "all_reduce" and since(0))
    number = count(0)
    another = news(usage, lambda: since(0) not in (None, first))
    await asyncio.wait_for(another, PATIENCE)  # at the same line all the time, but not stuck there
    assert number is not None and (count(0) or 0) > number
    await pool.commands.interrupt()
    client.group.break_up()  # at once: rank 0 may be in a collective
    await running


async def check_stopped(usage: RankUsage, pool: Pool, client: PoolClient) -> None:
    """See where the debugger has stopped a rank."""

    def stopped() -> StoppedAt | None:
        one = usage.latest[pool.record.id][1]
        return one and one.stopped

    connection = DebugConnection(client.folder, lambda *_: None)
    connection.open()
    assert await connection.attach([1], PATIENCE) == {}
    code = "def f():\n    breakpoint()\n    return 1\nf()"
    running = client.execute(code, [1], lambda *_: None, execution_count=9)
    cell = asyncio.create_task(running)
    assert await news(usage, stopped) == StoppedAt("In[9]", 3)
    await connection.detach([1], PATIENCE)
    assert (await cell)[1].status == "ok"
    await news(usage, lambda: stopped() is None)
    await connection.close()


async def test_processes_are_looked_at_while_somebody_wants_it(tmp_path: Path) -> None:
    async def check(usage: RankUsage, pool: Pool) -> None:
        assert usage.latest == {}
        release = usage.want()

        def rank(number: int) -> Usage | None:
            return usage.latest.get(pool.record.id, [None, None])[number]

        first = await news(usage, lambda: rank(0))
        assert first.cpu is None  # there is nothing yet to compare it with
        assert first.pid == first.host_pid == pool.record.ranks[0].pid
        assert 50e6 < first.memory < 5e9
        assert first.gpu_uuid is first.allocated is first.reserved is None

        client = PoolClient(Path(pool.record.folder))
        await client.connect()
        running = asyncio.create_task(client.execute(BUSY, [0, 1], lambda *_: None))

        def compared() -> Any:
            zero, one = rank(0), rank(1)
            ended = zero and zero.line is None and zero.cpu is not None
            return ended and one and one.host_pid and (one.cpu or 0) > max(10, zero.cpu) and one

        busy = await news(usage, compared)
        assert busy.host_pid == busy.pid  # answered while its main thread works
        idle = rank(0)
        assert idle
        assert idle.cpu < busy.cpu
        assert busy.line in (3, 4)
        assert busy.call is busy.calls is busy.waiting_since is None
        assert idle.line is idle.call is idle.waiting_since is None
        await pool.commands.interrupt()
        await running

        await check_waits(usage, pool, client)
        await check_stopped(usage, pool, client)

        stuck = asyncio.create_task(client.execute(STUCK, [0, 1], lambda *_: None))
        silent = await news(usage, lambda: (one := rank(1)) and one.host_pid is None and one)
        assert silent.memory > 50e6  # which is not the rank's own to tell
        # Nor does a server wait for it that finds this pool.
        assert set(await rank_states(Path(pool.record.folder), [0, 1])) == {0}
        await pool.commands.restart([1])
        # The old one may still answer, as the signal that ends it wakes it up.
        answer = news(
            usage,
            lambda: (one := rank(1)) and one.host_pid and one.pid != silent.pid and one,
        )
        new = await answer
        assert new.pid == pool.record.ranks[1].pid
        await stuck
        await client.close()

        release()
        release()  # once more makes no difference
        await asyncio.to_thread(wait_for, lambda: not usage.latest, "the last look")
        again = usage.want()
        assert await news(usage, lambda: rank(0))
        again()

    manager = WarmManager()
    pool = await manager.create(request(tmp_path))
    while pool.record.state is not PoolState.RUNNING:
        await pool.changed_since(pool.record.version, 60)
        assert not pool.record.state.ended, pool.record.reason
    usage = RankUsage(manager, interval=0.1)
    try:
        await check(usage, pool)
    finally:
        await usage.close()
        await manager.stop_all()


def test_a_record_is_news_when_a_rank_goes_from_cell_to_cell() -> None:
    rank = RankRecord(0, 0, "cpu", None, state="idle", since=1.0)
    assert rank.note_activity("busy", 7)
    begun = rank.since
    assert not rank.note_activity("busy", 7)
    assert rank.since == begun > 1.0
    assert rank.note_activity("busy", 8)  # its end was not heard of in between
    assert (rank.cell, rank.state) == (8, "busy")
    assert not rank.note_activity("idle", 7, since=begun)  # said before, and heard after that
    assert rank.note_activity("idle", 8)
    rank.state = "dead"
    assert not rank.note_activity("busy", 9)


def row(pid: int, user: str | None = None) -> GpuProcess:
    return GpuProcess(pid, user, "python", memory=1, sm=None)


def test_a_process_is_a_rank_only_by_its_pid_and_its_gpu() -> None:
    me, gpus = getpass.getuser(), [GpuReference(n, str(n), f"GPU-{n}", "T") for n in (0, 1)]
    pool = PoolRecord("p-1", None, "", 2, "nccl", "cycle", "fork", "", "")
    pool.ranks = [RankRecord(n, n, f"cuda:{n}", gpus[n], pid=100 + n) for n in (0, 1)]
    # Rank 1 sees pid 101; on the host, whose pids NVML tells, it is 9101.
    usage = {"p-1": [None, Usage(1, 101, 9101, None, 1, "GPU-1", *[None] * 6)]}
    processes = {
        "GPU-0": [row(100, me), row(101, me), row(7, me), row(8, "other")],
        "GPU-1": [row(9101), row(101, me), row(9102)],
    }
    kernels = {7: {"kernel_id": "k-1", "name": "a.ipynb"}}
    said = with_owners(processes, [pool], usage, kernels, me)
    assert [one.who for one in said["GPU-0"]] == [
        Owner("rank", pool="p-1", rank=0),
        Owner("mine"),
        Owner("kernel", kernel_id="k-1", name="a.ipynb"),
        Owner("other"),
    ]
    assert [one.who for one in said["GPU-1"]] == [
        Owner("rank", pool="p-1", rank=1),
        Owner("rank", pool="p-1", rank=1),
        Owner("unknown"),
    ]
    assert said["GPU-0"][0].memory == 1
