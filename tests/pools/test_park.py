"""Pools that are parked for those who wait, found again, and kept from harm; on pretended GPUs."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.processes.control_groups import available_memory
from jupyter_dist_server.common.protocol.agents.attachment import SERVER, Owner
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.gpus.gpu_state import GpuState
from jupyter_dist_server.gpus.inventory import Inventory
from jupyter_dist_server.gpus.telemetry import Telemetry
from jupyter_dist_server.jobs.leases.lease import holders
from jupyter_dist_server.pools.can_park import check_memory
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.pools.reports.rank_usage import RankUsage
from jupyter_dist_server.server.gpus.prometheus import GpuCollector
from jupyter_dist_server.server.page import html

from ..fake_cuda.build import FakeCuda
from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import FOUR, NAMES
from ..pool_driver import client_of, request
from .warm import start_pool, until, warm_manager

FAULTS = int(os.environ.get("JUPYTER_DIST_CHAOS", "20"))


@pytest.fixture
def driver(gpus: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    (tmp_path / "cuda").mkdir()
    driver = FakeCuda(tmp_path / "cuda")
    for name, value in driver.environment.items():
        monkeypatch.setenv(name, value)
    return driver


def leased() -> dict[str, str | None]:
    """Return which pool leases which GPU, by its number."""
    return {uuid[-1]: lease.pool for uuid, lease in sorted(holders(FOUR).items())}


async def done(pool: Pool) -> None:
    """Wait until a pool is parked or resumed, or could not be."""
    while pool.record.parking and not pool.record.parking.failure:
        await pool.changed_since(pool.record.version, 60)


async def parked(pool: Pool) -> None:
    await pool.parker.park()
    await done(pool)
    assert pool.record.state is PoolState.SUSPENDED, pool.record.parking


async def run(pool: Pool, code: str) -> dict[int, str]:
    """Run code on a pool; return what ranks printed, or why they did not."""
    text: dict[int, str] = {}

    def hear(rank: int, kind: str, content: dict[str, str]) -> None:
        said = content.get("text") or content.get("evalue") or ""
        text[rank] = text.get(rank, "") + said

    async with client_of(pool) as client:
        ranks = [rank for rank in range(pool.record.world_size) if rank not in client.dead]
        await client.execute(code, ranks, hear)
    return {rank: said.strip() for rank, said in text.items()}


async def test_an_idle_pool_is_parked_once_somebody_waits(driver: FakeCuda, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        idle = await start_pool(manager, tmp_path, num_ranks=2, park_after=0.5)
        await run(idle, "kept = rank + 10")
        await until(lambda: idle.record.idle_since)
        other = await start_pool(manager, tmp_path, num_ranks=2)
        await other.stop()
        assert idle.record.state is PoolState.RUNNING, "nobody has waited for its GPUs"
        waiting = await manager.create(request(tmp_path, num_ranks=4, wait=600.0))
        await until(lambda: waiting.record.progress.reason)
        assert "parks after 1 more idle minute" in str(waiting.record.progress.reason)
        await until(lambda: waiting.record.state is PoolState.RUNNING)
        assert idle.record.state is PoolState.SUSPENDED
        assert set(leased().values()) == {waiting.record.id}
        await idle.parker.resume()
        await until(lambda: idle.record.parking and idle.record.parking.line)
        await waiting.stop()
        await done(idle)
        assert await run(idle, "print(kept)") == {0: "10", 1: "11"}


async def test_a_pool_of_an_owner_that_has_ended_is_found_parked(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        first = PoolManager(owner=Owner(SERVER, 600.0))
        pool = await start_pool(first, tmp_path, num_ranks=2, park_after=3600.0)
        await run(pool, "kept = rank + 10")
        await parked(pool)
        await first.release(pool.record.id)
        (found,) = await manager.adopt_unserved()
        await until(lambda: found.record.state is PoolState.SUSPENDED)
        assert found.record.parked and not found.record.parked.leased
        await found.parker.ready()
        assert found.record.state is PoolState.RUNNING
        assert await run(found, "print(kept)") == {0: "10", 1: "11"}
        await first.zygotes.close()


async def test_who_looks_at_the_machine_is_told(driver: FakeCuda, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0, name="a.ipynb")
        collector = GpuCollector(Telemetry(), manager)
        assert list(collector.collect()) == []
        await parked(pool)
        command = [str(Path(sys.executable).with_name("jdist")), "info"]
        table = await asyncio.to_thread(subprocess.check_output, command, text=True)
        told = f": pool {pool.record.id} of a.ipynb, from GPUs 0, 1, with 0 B in memory."
        assert table.splitlines()[-1].startswith("Parked since ") and table.strip().endswith(told)
        command += ["--json"]
        said = json.loads(await asyncio.to_thread(subprocess.check_output, command))
        assert [one["gpus"] for one in said["parked"]] == [NAMES[:2]]
        page = html([pool.record], GpuState(Inventory()), {}, [])
        assert "parked since" in page and "0 B in memory" in page and "GPUs 0, 1" not in page
        usage = RankUsage(manager, interval=0.1)
        usage.want()
        await until(lambda: usage.latest.get(pool.record.id))
        assert all(used and used.memory for used in usage.latest[pool.record.id])
        await usage.close()
        (family,) = collector.collect()
        assert family.name == "jupyter_dist_pool_parked_bytes"
        assert [sample.labels["pool"] for sample in family.samples] == [pool.record.id]


@pytest.mark.parametrize("step", ["lock", "checkpoint", "restore", "unlock"])
async def test_an_owner_that_ends_in_the_middle_leaves_a_pool_that_can_be_used(
    driver: FakeCuda, tmp_path: Path, step: str
) -> None:
    async with warm_manager() as manager:
        first = PoolManager(owner=Owner(SERVER, 600.0))
        pool = await start_pool(first, tmp_path, num_ranks=2, park_after=3600.0)
        await run(pool, "kept = rank + 10")
        if step in ("restore", "unlock"):
            await parked(pool)
        driver.script(f"1 {step} hang")
        await (pool.parker.resume() if pool.record.parked else pool.parker.park())
        await until(lambda: any(line.startswith(f"0 {step}") for line in driver.calls()))
        await first.release(pool.record.id)
        (found,) = await manager.adopt_unserved()
        await until(lambda: found.record.state is PoolState.RUNNING)
        assert leased() == dict.fromkeys("01", pool.record.id)
        driver.script()
        await found.parker.ready()
        assert await run(found, "print(kept)") == {0: "10", 1: "11"}
        await parked(found)
        assert leased() == {}
        await first.zygotes.close()


async def test_a_pool_that_could_not_be_parked_says_why_until_that_is_dismissed(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0)
        driver.script("1 checkpoint fail 2")
        await pool.parker.park()
        with pytest.raises(DistError) as refused:
            await pool.resizer.resize(1)
        assert refused.value.code == "not_resized"
        await done(pool)
        assert pool.record.state is PoolState.RUNNING
        assert pool.record.parking and pool.record.parking.failure
        await pool.parker.resume()
        assert pool.record.parking is None
        await pool.resizer.resize(1)
        await until(lambda: pool.record.world_size == 1 and not pool.record.resizing)


async def test_a_parked_pool_that_is_stopped_or_loses_its_agent_leaves_nothing(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        stopped = await start_pool(manager, tmp_path, num_ranks=1, park_after=3600.0)
        await parked(stopped)
        await stopped.stop()
        assert stopped.record.state is PoolState.COMPLETED
        killed = await start_pool(manager, tmp_path, num_ranks=1, park_after=3600.0)
        await parked(killed)
        ranks = [psutil.Process(rank.pid) for rank in killed.record.ranks]
        assert killed.agent.pid
        psutil.Process(killed.agent.pid).kill()
        await until(lambda: killed.record.state.ended)
        await until(lambda: not any(rank.is_running() for rank in ranks))
        assert not Path(killed.record.folder).exists()


async def test_the_time_limit_goes_on_and_the_idle_limit_does_not(
    driver: FakeCuda, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        limits = {"park_after": 3600.0, "idle_limit": 1.0, "time_limit": 3.0}
        pool = await start_pool(manager, tmp_path, num_ranks=1, **limits)
        await parked(pool)
        await until(lambda: pool.record.state.ended)
        assert pool.record.reason and pool.record.reason.code == "time_limit"


def test_the_host_must_have_room(tmp_path: Path) -> None:
    check_memory(10 << 30, 13 << 30)
    with pytest.raises(DistError, match="10 GiB on their GPUs, and this machine has 11 GiB"):
        check_memory(10 << 30, 11 << 30)
    group = tmp_path / "sys/fs/cgroup/user.slice"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal: 99 kB\nMemAvailable:   8192 kB\n")
    assert available_memory(tmp_path) == 8 << 20
    (group / "memory.max").write_text(f"{4 << 20}\n")
    (group / "memory.current").write_text(f"{3 << 20}\n")
    (group / "memory.stat").write_text(f"anon 5\ninactive_file {1 << 20}\n")
    assert available_memory(tmp_path) == 2 << 20


async def fault(pool: Pool, driver: FakeCuda, dice: random.Random) -> tuple[str, set[int]]:
    """Let something go wrong as a pool is parked or resumed; return what, and who may be lost."""
    steps = ("restore", "unlock") if pool.record.parked else ("lock", "checkpoint")
    rank, step = dice.randrange(2), dice.choice(steps)
    what = dice.choice(["fail 2", "fail 801", "lose 2", "kill"])
    driver.calls()
    driver.script(f"{rank} {step} {'hang' if what == 'kill' else what}")
    await (pool.parker.resume() if pool.record.parked else pool.parker.park())
    if what == "kill":
        other, log = f"{1 - rank} {step}", list[str]()
        await until(
            lambda: log.extend(driver.calls()) or any(line.startswith(other) for line in log)
        )
        psutil.Process(pool.record.ranks[rank].pid).kill()
    await done(pool)
    driver.script()
    failure = pool.record.parking and pool.record.parking.failure
    said = f"{what} of rank {rank} in {step}: {failure.message if failure else 'nothing said'}"
    is_lost = what == "kill" or f"Rank {rank} had to be ended" in said
    return said, {rank} if is_lost else set()


async def test_random_faults_lose_nothing_but_what_is_said(
    driver: FakeCuda, tmp_path: Path
) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    dice, seen = random.Random(seed), []
    async with warm_manager() as manager:
        pool = await start_pool(manager, tmp_path, num_ranks=2, park_after=3600.0)
        await run(pool, "kept = rank + 10")
        for _ in range(FAULTS):
            said, lost = await fault(pool, driver, dice)
            seen.append(said)
            parked = pool.record.parked
            assert not (parked and parked.leased), seen[-5:]
            assert leased() == ({} if parked else dict.fromkeys("01", pool.record.id)), seen[-5:]
            if parked and dice.random() < 0.3:
                continue
            await pool.parker.ready()
            await known_dead(pool, lost)
            assert dead(pool) == lost, seen[-5:]
            assert await run(pool, "print(kept)") == {
                rank: str(rank + 10) for rank in (0, 1) if rank not in lost
            }, seen[-5:]
            if lost:
                await pool.commands.restart(lost)
                await until(lambda: pool.record.state is PoolState.RUNNING)
                await run(pool, "kept = rank + 10")


async def known_dead(pool: Pool, ranks: set[int]) -> None:
    await until(lambda: ranks <= dead(pool))


def dead(pool: Pool) -> set[int]:
    return {rank.rank for rank in pool.record.ranks if rank.state == "dead"}
