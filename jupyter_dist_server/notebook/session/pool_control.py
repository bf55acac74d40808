"""Pools that the kernel owns itself, without a server, or uses beside their owner."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import wait
from copy import deepcopy
from pathlib import Path

from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.pool_record import PoolRecord, PoolState
from ...common.protocol.ranks.profile_messages import RankLanes
from ...placement.requests.request import PoolRequest
from ...pools.discovery import Found, find_pools
from ...pools.end_reasons import start_cancelled
from ...pools.pool import Pool
from ...pools.pool_manager import PoolManager
from ...pools.processes.zygote_registry import DEFAULT_KEEP_WARM
from ..loop_thread import LoopThread

KEEP_WARM = "JUPYTER_DIST_KEEP_WARM"
"""Environment variable: how long a kernel keeps a zygote after its pool, in s; 0 for not at all."""


def kernel_id() -> str | None:
    """Return the id that a Jupyter server gave this kernel; `None` outside of one."""
    from IPython import get_ipython

    application = getattr(get_ipython(), "parent", None)
    connection = getattr(getattr(application, "parent", None), "connection_file", "")
    match = re.fullmatch(r"kernel-(.+)\.json", Path(connection).name)
    return match and match[1]


class LocalControl:
    """Pools that this process has started, or keeps alive beside their owner.

    `ServerControl` has the same methods for pools that the server owns.
    """

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._manager = PoolManager(keep_warm=float(os.environ.get(KEEP_WARM, DEFAULT_KEEP_WARM)))
        self._starting: asyncio.Future[Pool] | None = None

    def find(self) -> PoolRecord | None:
        """Return the pool that this kernel started."""
        for pool in self._manager.pools.values():
            if not pool.record.state.ended:
                return deepcopy(pool.record)
        return None

    def start(self, request: PoolRequest) -> PoolRecord:
        """Begin to start a pool."""
        self._starting = None
        try:  # an interrupt may come before `submit` returns, when the start has begun
            return self._loop.submit(self._create(request)).result()
        except KeyboardInterrupt:
            # It ends when it can: a thread may be leasing GPUs for it.
            ending = self._loop.submit(self._end())
            if not wait([ending], timeout=patience.program).done:
                raise DistError(
                    "start_cancelled",
                    f"The start was cancelled {patience.program:.0f} s ago and has not ended yet: "
                    "the driver or the cluster does not respond.",
                    "It ends as soon as that responds. %dist_status shows whether a pool runs.",
                ) from None
            ending.result()
            raise start_cancelled() from None

    async def _create(self, request: PoolRequest) -> PoolRecord:
        self._starting = asyncio.ensure_future(self._manager.create(request))
        return deepcopy((await self._starting).record)

    async def _end(self) -> None:
        if self._starting:
            with contextlib.suppress(DistError):  # it has not started
                await (await self._starting).stop()

    def wait(self, record: PoolRecord, seconds: float) -> PoolRecord:
        """Return the pool's record once it is newer than `record`, or after some seconds."""
        return self._after(record.id, lambda pool: pool.changed_since(record.version, seconds))

    def stop(self, pool_id: str) -> None:
        """Stop a pool, and wait until nothing of it is left."""
        self._loop.run(self._manager.get(pool_id).stop())

    def restart(self, pool_id: str, ranks: list[int] | None) -> PoolRecord:
        """Begin to replace ranks; with `None`, all on nodes that are not lost."""
        drop = ranks is None
        return self._after(pool_id, lambda pool: pool.commands.restart(ranks, drop))

    def resize(self, pool_id: str, num_ranks: int, wait: float | None) -> PoolRecord:
        """Begin to have more or fewer ranks."""
        return self._after(pool_id, lambda pool: pool.resizer.resize(num_ranks, wait))

    def park(self, pool_id: str) -> PoolRecord:
        """Begin to park a pool, or end its wait to be resumed."""
        return self._after(pool_id, lambda pool: pool.parker.park())

    def resume(self, pool_id: str) -> PoolRecord:
        """Begin to bring a parked pool back to its GPUs."""
        return self._after(pool_id, lambda pool: pool.parker.resume())

    def extend(self, pool_id: str, seconds: float | None) -> PoolRecord:
        """Let a pool run longer than its time limit, and restart its idle time."""
        return self._after(pool_id, lambda pool: pool.commands.extend(seconds))

    def _after(self, pool_id: str, work: Callable[[Pool], Awaitable[object]]) -> PoolRecord:
        """Do something with a pool, and return its record then."""
        pool = self._manager.get(pool_id)

        async def done() -> PoolRecord:
            await work(pool)
            return deepcopy(pool.record)

        return self._loop.run(done())

    def tell_lanes(self, pool_id: str, told: list[RankLanes]) -> None:
        """Do nothing: without a server, there is no timeline."""

    def forget(self) -> None:
        """Drop the zygotes, which make the next start quicker."""
        self._loop.call(self._manager.zygotes.drop)

    # -- pools that run already -------------------------------------------------------------

    def adopt(self, pool_id: str) -> PoolRecord:
        """Attach to a pool that another process has started."""
        found = next((one for one in find_pools() if one.id == pool_id), None)
        if found is None:
            raise DistError(
                "pool_not_found",
                f"There is no pool {pool_id}.",
                "%dist_attach without an ID lists your pools.",
            )
        return self._loop.run(self._adopt(found))

    def adopt_own(self, pool_id: str | None) -> PoolRecord | None:
        """Attach to this kernel's pool, named or started for it, if its server is gone."""
        kernel = kernel_id()
        for found in find_pools():
            started_for = found.config.record.kernel_id
            if found.id == pool_id or (kernel and started_for == kernel):
                record = self._loop.run(self._adopt(found))
                return record if record.ended is None else None
        return None

    async def _adopt(self, found: Found) -> PoolRecord:
        pool = self._manager.adopt(found)
        deadline = time.monotonic() + patience.busy_answer
        while pool.record.state in (PoolState.PENDING, PoolState.CONFIGURING):
            left = deadline - time.monotonic()
            if left <= 0:  # its ranks are being started or replaced
                break
            await pool.changed_since(pool.record.version, left)
        return deepcopy(pool.record)

    def release(self, pool_id: str) -> None:
        """Leave a pool to its other users."""
        self._loop.run(self._manager.release(pool_id))
