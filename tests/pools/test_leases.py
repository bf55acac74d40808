"""Pools lease their GPUs from start to end: pretend ones, for which torch needs no CUDA."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE
from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.jobs.leases.lease import holders
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool import Pool

from ..environment import tagged
from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import FOUR, MACHINE, NAMES
from ..pool_driver import agent_of
from ..waiting import wait_for
from .warm import start_pool, warm_manager


def leased() -> dict[str, str]:
    """Return which pool leases which GPU."""
    return {uuid: who.pool for uuid, who in holders(FOUR).items()}


def used(pool: Pool) -> list[str]:
    return [rank.gpu.uuid for rank in pool.record.ranks if rank.gpu]


def lease_files(process: psutil.Process) -> list[str]:
    links = []
    for entry in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(os.readlink(entry))
    return [link for link in links if link.endswith((".lease", ".holder"))]


def check_without_cuda(pool: Pool) -> None:
    """Check that ranks whose torch cannot use their GPUs keep these, and say so."""
    import torch

    why = "libcuda.so.1: file too short" if torch.version.cuda else "without CUDA"
    assert [rank.device for rank in pool.record.ranks] == ["cpu"]
    assert (pool.record.backend, pool.record.leases) == ("gloo", "exclusive")
    (notice,) = pool.record.notices
    for words in (torch.__version__, sys.executable, why, "on the CPU"):
        assert words in notice


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_the_agent_alone_holds_a_lease_from_its_start_to_its_end(
    gpus: State, tmp_path: Path
) -> None:
    async with warm_manager() as manager:
        first = await start_pool(manager, tmp_path, num_ranks=1)
        check_without_cuda(first)
        second = await start_pool(manager, tmp_path, num_ranks=2)  # from the first one's zygote
        assert (used(first), used(second)) == (NAMES[:1], NAMES[1:3])
        assert "GPU 0 is leased by" in second.record.notices[0]
        assert first.record.id in second.record.notices[0]
        family = [process for process in tagged(dict(os.environ)) if process.pid != os.getpid()]
        (zygote,) = [process for process in family if process.name() == ZYGOTE]
        assert agent_of(second).parent() == zygote
        expected = {agent_of(first).pid: 2, agent_of(second).pid: 3}
        counts = {process.pid: len(lease_files(process)) for process in family}
        assert {pid: count for pid, count in counts.items() if count} == expected
        assert len(counts) >= 6 and lease_files(psutil.Process()) == []
        told = holders(FOUR)
        assert told[NAMES[1]].pid == agent_of(second).pid

        pid = second.record.ranks[0].pid
        await second.commands.restart()
        while second.record.state is not PoolState.RUNNING or second.record.generation < 2:
            assert leased()[NAMES[2]] == second.record.id
            await second.changed_since(second.record.version, 1)
        assert second.record.ranks[0].pid != pid and used(second) == NAMES[1:3]
        assert leased()[NAMES[2]] == second.record.id

        await second.stop()
        assert leased() == {NAMES[0]: first.record.id}
        manager.zygotes.drop()


async def test_a_killed_agent_has_its_gpus_free_at_once(gpus: State, tmp_path: Path) -> None:
    async with warm_manager() as manager:
        pool = await manager.create(PoolRequest(cwd=str(tmp_path)))
        while pool.record.progress.phase != "importing torch":
            await pool.changed_since(pool.record.version, 10)
        assert set(leased()) == set(NAMES)
        killed = 0
        while not killed:  # the phase begins before its process does
            for process in tagged(dict(os.environ)):
                with suppress(psutil.Error):  # it may end meanwhile
                    if process.name() == "dist-agent" or process.ppid() == os.getpid():
                        process.kill()
                        killed += 1
            await asyncio.sleep(0)
        await pool.ended.wait()
        assert pool.record.state is PoolState.FAILED
        assert leased() == {}

        pool = await start_pool(manager, tmp_path)
        agent_of(pool).kill()
        while leased():
            await asyncio.sleep(0)
        again = await start_pool(manager, tmp_path, num_ranks=1)
        assert used(again) == NAMES[:1]


async def test_ranks_on_mig_instances_see_one_each(gpus: State, tmp_path: Path) -> None:
    gpus.write(**MACHINE, **{"1.mig": "1g.10gb,1g.10gb"})
    async with warm_manager(0.0) as manager:
        pool = await start_pool(manager, tmp_path, gpu_ids=("1:1", "1:0"))
        assert [rank.gpu.label for rank in pool.record.ranks if rank.gpu] == ["1:1", "1:0"]
        assert "MIG" in pool.record.notices[0] and pool.record.backend == "gloo"
        client = PoolClient(Path(pool.record.folder))
        await client.connect()
        masks: dict[int, str] = {}
        code = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'], gpu_id)"

        def hear(rank: int, kind: str, content: dict[str, Any]) -> None:
            masks[rank] = masks.get(rank, "") + content.get("text", "")

        await client.execute(code, [0, 1], hear)
        await client.close()
        assert masks == {rank: f"{uuid} 1\n" for rank, uuid in enumerate(used(pool))}
        assert all(uuid.startswith("MIG-") for uuid in used(pool))


OWNER = """
import asyncio, sys
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.placement.requests.request import PoolRequest

async def main():
    pool = await PoolManager().create(PoolRequest(num_ranks=2, cwd=sys.argv[1]))
    while True:
        print(pool.record.progress.phase, pool.record.state.value, flush=True)
        await pool.changed_since(pool.record.version, 60)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["importing torch", "starting ranks", "RUNNING"])
def test_a_killed_owner_takes_its_pools_leases_along(
    gpus: State, tmp_path: Path, moment: str
) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    # While torch is imported there is no agent yet to remove the pool's folder.
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": folder}
        ) as owner,
    ):
        assert owner.stdout
        assert any(moment in line for line in owner.stdout)
        assert set(leased()) == set(NAMES[:2])
        owner.kill()
        wait_for(lambda: not leased(), "the end of the leases")
