"""What it costs to send a cell to one more rank: a real client, and ranks that only answer."""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from jupyter_dist_server.client.pool_client import PoolClient
from jupyter_dist_server.common.pool_folder import create_folder, new_key, write_private
from jupyter_dist_server.common.processes.process_ref import ProcessRef, boot_id
from jupyter_dist_server.common.protocol.agents.attachment import KERNEL
from jupyter_dist_server.common.protocol.pool_file import CONFIG, PlacedRank, PoolFile
from jupyter_dist_server.common.protocol.pool_record import PoolRecord

SIZES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Cost:
    """Of one cell, in milliseconds."""

    ranks: int
    wall: float
    cpu: float
    """Of the client's process alone."""


def measure(sizes: Sequence[int] = SIZES, cells: int = 100) -> list[Cost]:
    return [asyncio.run(_measure_one(ranks, cells)) for ranks in sizes]


def per_rank(costs: Sequence[Cost]) -> tuple[float, float]:
    """Return what one more rank costs the client, and what a cell costs without any, in ms."""
    line = statistics.linear_regression([c.ranks for c in costs], [c.cpu for c in costs])
    return line.slope, line.intercept


async def _measure_one(ranks: int, cells: int) -> Cost:
    async with echoing(ranks) as client:
        await _run(client, 10)
        assert not client.group.suspect, "the client looks for a group before each cell"
        used = time.process_time()
        times = await _run(client, cells)
        used = time.process_time() - used
    return Cost(ranks, 1e3 * statistics.median(times), 1e3 * used / cells)


@asynccontextmanager
async def echoing(ranks: int) -> AsyncIterator[PoolClient]:
    """Start ranks that only answer, and connect to them."""
    folder = create_folder()
    record = PoolRecord("p-1", None, "", ranks, "none", "cycle", "fork", sys.executable, "")
    config = PoolFile(
        id=record.id,
        key=new_key(),
        world_size=ranks,
        backend=record.backend,
        start_method=record.start_method,
        timeout=60.0,
        cwd=b"",
        sys_path=[],
        thread_limits={},
        owner=ProcessRef.of(os.getpid()),
        grace=0.0,
        ranks=[PlacedRank("cpu", None, None)] * ranks,
        boot=boot_id(),
        host=record.host,
        owner_kind=KERNEL,
        record=record,
    )
    write_private(folder / CONFIG, config)
    command = [sys.executable, "-m", "benchmarks.echo", str(folder)]
    echo = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent)
    try:
        assert echo.stdout and echo.stdout.readline() == b"ready\n", "the echoing ranks have ended"
        client = PoolClient(folder)
        await client.connect()
        try:
            yield client
        finally:
            await client.close()
    finally:
        echo.kill()
        echo.communicate()
        shutil.rmtree(folder)


def main() -> None:
    """Measure as many echo ranks as are asked for; each needs ten open files."""
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for size in map(int, sys.argv[1:]):
        print(measure([size], max(10, 6400 // size))[0])


async def _run(client: PoolClient, cells: int) -> list[float]:
    times = []
    for _ in range(cells):
        begun = time.perf_counter()
        replies = await client.execute("pass", range(client.world_size), lambda *_: None)
        times.append(time.perf_counter() - begun)
        assert len(replies) == client.world_size
    return times


if __name__ == "__main__":
    main()
