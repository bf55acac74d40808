"""Many ranks within what the system allows: open files, and inotify instances."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.files.open_files import CLIENT_EACH, check_open_files
from jupyter_dist_server.rank.output.capture import _WATCHED

from ..pool_driver import client_of, linux, request, running

REFUSED = """
import asyncio
from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.pools.pool_manager import PoolManager
from jupyter_dist_server.placement.requests.request import PoolRequest

async def start():
    manager = PoolManager(watch=True)
    try:
        await manager.create(PoolRequest(num_ranks=64))
    except DistError as error:
        print(error.code, error.field, error)
    await manager.stop_all()

asyncio.run(start())
"""


def instances(pid: int) -> int:
    """Return how many inotify instances a process has."""
    folder = Path(f"/proc/{pid}/fd")
    return Counter(os.readlink(file) for file in folder.iterdir())["anon_inode:inotify"]


@linux
async def test_more_ranks_than_the_soft_limit_allows(tmp_path: Path) -> None:
    ranks = _WATCHED + 1
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/dev/fd"))
    soft = used + CLIENT_EACH * ranks // 2
    assert before[1] == resource.RLIM_INFINITY or before[1] > 2 * soft

    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
        async with running(request(tmp_path, num_ranks=ranks)) as pool, client_of(pool) as client:
            assert len(os.listdir("/dev/fd")) > soft
            assert [instances(rank.pid) for rank in pool.record.ranks if rank.pid] == [0] * ranks
            heard: list[int] = []

            def on_output(rank: int, kind: str, content: dict[str, str]) -> None:
                if kind == "stream" and content["text"].startswith("C"):
                    heard.append(rank)
                    if len(heard) == ranks:
                        (tmp_path / "all").touch()

            # What C code writes is shown while the cell runs, without inotify, too.
            code = "import os, time\nos.write(1, b'C\\n')\n" + (
                "while not os.path.exists('all'): time.sleep(0.01)"
            )
            replies = await client.execute(code, range(ranks), on_output)
            assert {reply.status for reply in replies.values()} == {"ok"}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@linux
@pytest.mark.slow
async def test_128_ranks_at_the_usual_soft_limit(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
        async with running(request(tmp_path, num_ranks=128)) as pool, client_of(pool) as client:
            code = "ones = torch.ones(1)\ndist.all_reduce(ones)\nassert ones.item() == 128"
            replies = await client.execute(code, range(128), lambda *_: None)
            assert {reply.status for reply in replies.values()} == {"ok"}
            assert [instances(rank.pid) for rank in pool.record.ranks if rank.pid] == [0] * 128
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@linux
async def test_a_rank_has_one_inotify_instance_at_most(tmp_path: Path) -> None:
    async with running(request(tmp_path)) as pool:
        assert [instances(rank.pid) for rank in pool.record.ranks if rank.pid] == [1, 1]


def test_too_many_ranks_for_the_hard_limit_are_refused_in_words() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    done = subprocess.run(
        [sys.executable, "-c", REFUSED], preexec_fn=limit, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("too_many_files num_ranks 64 ranks need 9"), done.stdout
    assert "open files in this process; its limit is 256." in done.stdout
    assert "Start at most 1" in done.stdout and "ulimit -Hn" in done.stdout


def test_a_client_is_refused_likewise() -> None:
    with pytest.raises(DistError, match="open files in this process"):
        check_open_files(10_000, CLIENT_EACH)
