"""Several notebooks, cells and commands meet while a pool is parked or resumed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.protocol.agents.attachment import SERVER, Owner
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.schedule.board import posted, wants_of
from jupyter_dist_server.pools.discovery import find_pools
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..fake_cuda.build import FakeCuda
from .test_park import dead, done, leased, parked, run
from .test_park import driver as driver
from .warm import start_pool, until, warm_manager

FINE = {0: "10", 1: "11"}


@asynccontextmanager
async def two_owners(tmp_path: Path) -> AsyncIterator[tuple[Pool, Pool]]:
    """Yield one pool as two notebooks know it, each of which may park and resume it."""
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0)
        await run(pool, "kept = rank + 10")
        other = PoolManager(owner=Owner(SERVER, 600.0))
        (found,) = [other.adopt(found) for found in await asyncio.to_thread(list, find_pools())]
        await until(lambda: found.record.state is PoolState.RUNNING)
        try:
            yield pool, found
        finally:
            await other.release(found.record.id)
            await other.zygotes.close()


async def hung(driver: FakeCuda, rank: int, step: str) -> None:
    """Wait until the other rank has taken the step in which `rank` hangs."""
    log: list[str] = []
    other = f"{1 - rank} {step}"
    await until(lambda: log.extend(driver.calls()) or any(line.startswith(other) for line in log))


async def parking_in(driver: FakeCuda, pool: Pool, step: str) -> None:
    """Begin to park a pool whose rank 0 hangs in a step."""
    driver.script(f"0 {step} hang")
    await pool.parker.park()
    await hung(driver, 0, step)


@pytest.mark.parametrize("step", ["lock", "checkpoint"])
async def test_a_cell_of_another_notebook_waits_until_the_pool_is_parked(
    driver: FakeCuda, tmp_path: Path, step: str
) -> None:
    async with two_owners(tmp_path) as (mine, other):
        await parking_in(driver, mine, step)
        await until(lambda: other.record.parked)
        ready = asyncio.create_task(other.parker.ready())
        await until(lambda: other.record.parking and other.record.parking.reason)
        await other.parker.park(only_if_idle=True)  # which somebody has come before
        driver.script()
        await done(mine)
        assert not (mine.record.parking and mine.record.parking.failure)
        await ready
        assert not dead(mine) and leased() == dict.fromkeys("01", mine.record.id)
        assert await run(mine, "print(kept)") == FINE
        await parked(mine)


async def test_two_notebooks_wait_for_the_gpus_of_one_pool(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with two_owners(tmp_path) as (mine, other):
        await parked(mine)
        with closing(Lease.take(["GPU-fake-0"], Leaseholder(pool="p-x", notebook="x.ipynb"))):
            await mine.parker.resume()
            await until(lambda: mine.record.parking and mine.record.parking.line)
            both = [asyncio.create_task(pool.parker.ready()) for pool in (mine, other)]
            await until(lambda: other.record.parking)
        await asyncio.gather(*both)
        assert mine.record.state is other.record.state is PoolState.RUNNING
        assert not list(wants_of(await asyncio.to_thread(posted))), "nobody waits any more"
        assert await run(other, "print(kept)") == FINE


async def test_a_cell_comes_while_the_pool_is_parked(driver: FakeCuda, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0)
        await run(pool, "kept = rank + 10")
        await parking_in(driver, pool, "checkpoint")
        with pytest.raises(DistError, match="cannot restart ranks while it is parked"):
            await pool.commands.restart([1])
        with pytest.raises(DistError, match="cannot be resized while"):
            await pool.resizer.resize(1)
        await pool.parker.resume()
        assert pool.record.parking and not pool.record.parking.resume, "it is too late for that"
        ready = asyncio.create_task(pool.parker.ready())
        driver.script()
        await ready
        assert await run(pool, "print(kept)") == FINE


async def test_a_pool_that_waits_for_a_cell_to_be_parked_is_called_off(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0)
        gate = tmp_path / "gate"
        cell = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)"
        running = asyncio.create_task(run(pool, cell))
        await until(lambda: all(rank.state == "busy" for rank in pool.record.ranks))
        await pool.parker.park()
        assert pool.record.parking
        await pool.parker.resume()
        assert pool.record.parking is None
        gate.touch()
        await running
        assert await run(pool, "print(rank)") == {0: "0", 1: "1"}
        assert pool.record.state is PoolState.RUNNING and driver.calls() == []


async def test_a_pool_that_is_parked_only_if_idle(driver: FakeCuda, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0)
        gate = tmp_path / "gate"
        cell = f"import os, time\nwhile not os.path.exists({str(gate)!r}): time.sleep(0.05)"
        for asked in (False, True):
            running = asyncio.create_task(run(pool, cell))
            await until(lambda: all(rank.state == "busy" for rank in pool.record.ranks))
            await pool.parker.park(only_if_idle=True)
            if asked:
                await pool.parker.park()
            gate.touch()
            await running
            await done(pool)
            assert (pool.record.state is PoolState.SUSPENDED) == asked
            gate.unlink()


async def test_a_pool_that_is_to_stay_parked_fails_the_cell_that_waits(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        limits = {"park_after": 3600.0, "time_limit": 3600.0}
        pool = await start_pool(manager, tmp_path, num_ranks=2, **limits)
        await parked(pool)
        await pool.commands.extend(60.0)
        await until(lambda: pool.record.time_limit == 3660.0)
        with closing(Lease.take(["GPU-fake-0"], Leaseholder(pool="p-x", notebook="x.ipynb"))):
            ready = asyncio.create_task(pool.parker.ready())
            await until(lambda: pool.record.parking and pool.record.parking.line)
            await pool.parker.park()
            with pytest.raises(DistError, match="The pool stays parked"):
                await ready
            assert pool.record.state is PoolState.SUSPENDED and pool.record.parking is None
            ready = asyncio.create_task(pool.parker.ready())
            await until(lambda: pool.record.parking and pool.record.parking.line)
            await pool.stop()
            await ready


async def test_a_pool_is_parked_whose_owner_has_ended_meanwhile(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        first = PoolManager(owner=Owner(SERVER, 600.0))
        pool = await start_pool(first, tmp_path, num_ranks=2, park_after=3600.0)
        await run(pool, "kept = rank + 10")
        await parking_in(driver, pool, "checkpoint")
        await first.release(pool.record.id)
        (found,) = await manager.adopt_unserved()
        await until(lambda: found.record.state is PoolState.RUNNING)
        driver.script()
        await parked(found)
        assert leased() == {}
        await found.parker.ready()
        assert await run(found, "print(kept)") == FINE
        await first.zygotes.close()
