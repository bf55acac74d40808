"""Pools keep a lab's rules, and say which."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.policy import PATH, allowed_idle_limit
from jupyter_dist_server.common.users import name_of
from jupyter_dist_server.jobs.rules.closures import Closure, change_closures

from ..fake_nvml.build import State
from ..fake_nvml.four_gpus import NAMES
from ..pool_driver import request, running
from ..waiting import PATIENCE
from .test_allocation import ask

ME = name_of(os.getuid())


@pytest.fixture
def policy(gpus: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PATH, str(tmp_path / "policy.toml"))
    return tmp_path / "policy.toml"


def close(*gpus: int, **fields: Any) -> None:
    closure = Closure(frozenset(NAMES[gpu] for gpu in gpus), "root", "fan", **fields)
    change_closures(lambda there: [*there, closure])


async def test_a_pool_has_no_more_gpus_than_its_user_may_have(policy: Path) -> None:
    policy.write_text("max_gpus = 3\n")
    first = await ask(gpu_ids=[3]).now()
    with pytest.raises(DistError, match=f"User {ME} may use 3 GPUs at once, and has 1 GPU"):
        await ask(num_ranks=3, one_rank_per_gpu=True).now()
    second = await ask().now()
    assert [gpu.index for gpu in second.placement.gpus if gpu] == [0, 1]
    (notice,) = second.placement.notices
    assert "GPU 2 is not for you now: User" in notice
    policy.write_text("max_gpus = 2\n")  # less than it has
    with pytest.raises(DistError, match="may use 2 GPUs at once, and has 3 GPUs"):
        await ask(num_ranks=1).now()
    with pytest.raises(DistError, match="may use 2 GPUs at once on this machine, not 3"):
        await ask(num_ranks=3, one_rank_per_gpu=True, wait=60).now()
    for one in (first, second):
        one.close()
    policy.write_text(f"[users.{ME}]\nmax_jobs = 0\n")
    with pytest.raises(DistError, match="may run 0 jobs, and pools with GPUs, at once"):
        await ask().now()


async def test_a_pool_leaves_drained_and_reserved_gpus_alone(policy: Path) -> None:
    close(0)
    close(1, start=time.time() + 3600, id="r1")
    with pytest.raises(DistError, match="GPU 0 is drained by root: fan"):
        await ask(gpu_ids=[0], force=True).now()
    for limit, found in ((None, [2, 3]), (4000.0, [2, 3]), (3000.0, [1, 2, 3])):
        got = await ask(time_limit=limit).now()
        assert [gpu.index for gpu in got.placement.gpus if gpu] == found
        got.close()


async def test_a_pool_waits_until_gpus_are_open_again(policy: Path) -> None:
    close(0, 1, 2, 3)
    waiting, told = ask(gpu_ids=[1], wait=60), asyncio.Event()
    with pytest.raises(DistError, match="GPU 1 is drained by root"):
        await waiting.now()
    got = asyncio.create_task(waiting.in_line(lambda *_: told.set()))
    await asyncio.wait_for(told.wait(), PATIENCE)
    soon = time.time() + 1.0  # nothing but the clock opens it then
    change_closures(lambda there: [msgspec.structs.replace(one, end=soon) for one in there])
    (await got).close()
    assert time.time() >= soon


def test_the_idle_limit_of_pools(policy: Path) -> None:
    policy.write_text('idle_limit = "30:00"\n')
    assert (allowed_idle_limit(None), allowed_idle_limit(7200.0)) == (1800.0, 7200.0)
    policy.write_text('max_idle_limit = "1:00:00"\n')
    assert (allowed_idle_limit(None), allowed_idle_limit(60.0)) == (3600.0, 60.0)
    policy.write_text('idle_limit = "2:00:00"\nmax_idle_limit = "1h"\n')
    assert allowed_idle_limit(None) == 3600.0
    with pytest.raises(DistError, match="An idle limit of 2:00:00 was asked for; this machine al"):
        allowed_idle_limit(7200.0)


async def test_a_pool_starts_with_the_limits_of_the_policy(policy: Path, tmp_path: Path) -> None:
    policy.write_text('idle_limit = "30:00"\ndefault_time = "2h"\n')
    async with running(request(tmp_path, num_ranks=1)) as pool:
        assert (pool.record.idle_limit, pool.record.time_limit) == (1800.0, 7200.0)
