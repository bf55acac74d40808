"""Pools of a manager that keeps a zygote, also in an environment that tells their processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from jupyter_dist_server.agent.zygote import NAME as ZYGOTE
from jupyter_dist_server.common.protocol.pool_record import PoolState
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.pools.pool_manager import PoolManager

from ..environment import named
from ..pool_driver import follow
from ..waiting import wait_for


def zygotes(env: dict[str, str]) -> list[psutil.Process]:
    return named(env, ZYGOTE)


@asynccontextmanager
async def warm_manager(keep_warm: float = 60.0) -> AsyncIterator[PoolManager]:
    manager = PoolManager(keep_warm=keep_warm)
    try:
        yield manager
    finally:
        await manager.stop_all()


async def start(manager: PoolManager, base: dict[str, str], tmp_path: Path, **more: Any) -> Pool:
    fields = {"num_ranks": 2, "base_env": base, "python": sys.executable}
    return await start_pool(manager, tmp_path, **{**fields, **more})


async def start_pool(manager: PoolManager, tmp_path: Path, **fields: Any) -> Pool:
    pool = await manager.create(PoolRequest(cwd=str(tmp_path), **fields))
    await follow(pool)
    assert pool.record.state is PoolState.RUNNING, pool.record.reason
    return pool


async def until(condition: Any) -> None:
    """Let the event loop run until a condition of other processes holds."""
    await asyncio.to_thread(wait_for, condition, "the zygote's change")
