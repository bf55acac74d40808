"""Pools that are resized while something dies: the old pool or the new one, never half of one."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress
from pathlib import Path

import psutil

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.protocol.agents.attachment import SERVER, Owner
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.jobs.leases.lease import holders
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import FOUR
from ..pool_driver import client_of
from .warm import start_pool, until, warm_manager

FAULTS = int(os.environ.get("JUPYTER_DIST_CHAOS", "12"))
SUM = "t = torch.ones(1)\ndist.all_reduce(t)\nprint(int(t), world_size, globals().get('kept'))"


async def resized(pool: Pool) -> None:
    """Wait until a pool has another size, or could not have it."""
    while (now := pool.record.resizing) and not now.failure and not pool.record.state.ended:
        await pool.changed_since(pool.record.version, 60)


async def running(pool: Pool) -> None:
    await until(lambda: pool.record.state is PoolState.RUNNING)


async def run(pool: Pool, code: str) -> dict[int, str]:
    text: dict[int, str] = {}

    def hear(rank: int, kind: str, content: dict[str, str]) -> None:
        text[rank] = text.get(rank, "") + content.get("text", "")

    async with client_of(pool) as client:
        await client.execute(code, range(pool.record.world_size), hear)
    return {rank: said.strip() for rank, said in text.items()}


async def whole(pool: Pool, sizes: set[int]) -> None:
    """Wait until a pool has one of these sizes, and just the GPUs of its ranks."""

    def is_whole() -> bool:
        record = pool.record
        gpus = sorted(rank.gpu.uuid for rank in record.ranks if rank.gpu)
        has_size = record.world_size in sizes and len(record.ranks) == record.world_size
        return has_size and len(gpus) == record.world_size and sorted(holders(FOUR)) == gpus

    await until(is_whole)


async def test_ranks_that_die_while_a_pool_is_resized(gpus: State, tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    dice = random.Random(seed)
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2)
        for _ in range(FAULTS):
            before = pool.record.world_size
            after = dice.choice([size for size in (1, 2, 3, 4) if size != before])
            await run(pool, "kept = rank + 10")
            victim = dice.randrange(before)
            process = psutil.Process(pool.record.ranks[victim].pid)
            await pool.resizer.resize(after)
            await asyncio.sleep(dice.random() * 0.4)  # any moment of the resize
            with suppress(psutil.NoSuchProcess):
                process.kill()
            await resized(pool)
            await running(pool)
            await known_dead(pool, victim, process.pid)
            await whole(pool, {before, after})
            dead = [rank.rank for rank in pool.record.ranks if rank.state == "dead"]
            assert set(dead) <= {victim}
            if dead:
                await pool.commands.restart(dead)
                await running(pool)
            size = pool.record.world_size
            kept = [
                rank + 10 if rank < before and rank not in dead else None for rank in range(size)
            ]
            said = {rank: f"{size} {size} {kept[rank]}" for rank in range(size)}
            assert await run(pool, SUM) == said, (before, after, victim)
            await pool.resizer.resize(size)  # which forgets a failure


async def known_dead(pool: Pool, victim: int, pid: int) -> None:
    def is_known() -> bool:
        ranks = pool.record.ranks
        return victim >= len(ranks) or ranks[victim].pid != pid or ranks[victim].state == "dead"

    await until(is_known)


async def test_an_owner_that_ends_meanwhile(gpus: State, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        first = PoolManager(owner=Owner(SERVER, 600.0))
        pool = await start_pool(first, tmp_path, num_ranks=2)
        for after in (4, 1, 3, 2, 4):
            before = pool.record.world_size
            await run(pool, "kept = rank + 10")
            await pool.resizer.resize(after)
            await asyncio.sleep(0.05 * after)  # another moment each time
            await first.release(pool.record.id)
            (found,) = await manager.adopt_unserved()
            await running(found)
            await whole(found, {before, after})
            size, least = found.record.world_size, min(before, found.record.world_size)
            kept = [rank + 10 if rank < least else None for rank in range(size)]
            said = {rank: f"{size} {size} {kept[rank]}" for rank in range(size)}
            assert await run(found, SUM) == said, (before, after)
            await manager.release(found.record.id)
            with suppress(DistError):
                (pool,) = await first.adopt_unserved()
            await running(pool)
        await pool.stop()
        await first.zygotes.close()
