"""Starting and stopping pools from a kernel: through the server, or in this process without one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from concurrent.futures import Future, wait
from copy import deepcopy
from pathlib import Path
from typing import Protocol

from ...common.errors import DistError
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
"""Environment variable: seconds for which a kernel keeps a zygote after its pool; 0 for none."""

_CANCEL = 30.0
"""Seconds within which a start can be stopped: Slurm, or a driver, may take long to answer."""
_SETTLE = 5.0
"""Seconds within which an agent answers who adopts its pool."""


def kernel_id() -> str | None:
    """Return the id that a Jupyter server gave this kernel; `None` outside of one."""
    from IPython import get_ipython

    application = getattr(get_ipython(), "parent", None)
    connection = getattr(getattr(application, "parent", None), "connection_file", "")
    match = re.fullmatch(r"kernel-(.+)\.json", Path(connection).name)
    return match and match[1]


class Control(Protocol):
    """What the magics need of the one who owns the pools."""

    def find(self) -> PoolRecord | None:
        """Return the live pool of this kernel."""

    def start(self, request: PoolRequest) -> PoolRecord:
        """Begin to start a pool."""

    def wait(self, record: PoolRecord, seconds: float) -> PoolRecord:
        """Return the pool's record once it is newer than `record`, or after some seconds."""

    def stop(self, pool_id: str) -> None:
        """Stop a pool and wait until nothing of it is left."""

    def restart(self, pool_id: str, ranks: list[int] | None) -> PoolRecord:
        """Begin to replace ranks; with `None`, all that are on nodes which are not lost."""

    def extend(self, pool_id: str, seconds: float | None) -> PoolRecord:
        """Let a pool run longer than its time limit, and count its idle time anew."""

    def tell_lanes(self, pool_id: str, told: list[RankLanes]) -> None:
        """Have what ranks did in a profiled cell shown in the timeline, if there is one."""

    def forget(self) -> None:
        """Keep nothing that makes the next start quicker."""


class LocalControl:
    """Pools that this very process has started, or holds beside their owner."""

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._manager = PoolManager(keep_warm=float(os.environ.get(KEEP_WARM, DEFAULT_KEEP_WARM)))

    def find(self) -> PoolRecord | None:
        """Return the pool that this kernel started."""
        for pool in self._manager.pools.values():
            if not pool.record.state.ended:
                return deepcopy(pool.record)
        return None

    def start(self, request: PoolRequest) -> PoolRecord:
        """Begin to start a pool."""
        begun: Future[PoolRecord] = Future()
        try:
            self._loop.submit(self._start(request, begun))
            return begun.result()
        except KeyboardInterrupt:
            # One that has begun is stopped once it can be: a thread may just lease GPUs for it.
            if not begun.cancel():
                ending = self._loop.submit(self._end(begun))
                if not wait([ending], timeout=_CANCEL).done:
                    raise _still_ending() from None
                ending.result()
            raise start_cancelled() from None

    async def _start(self, request: PoolRequest, begun: Future[PoolRecord]) -> None:
        if not begun.set_running_or_notify_cancel():
            return
        try:
            begun.set_result(deepcopy((await self._manager.create(request)).record))
        except BaseException as error:
            begun.set_exception(error)
            raise

    async def _end(self, begun: Future[PoolRecord]) -> None:
        with contextlib.suppress(DistError):  # it has not started
            await self._manager.get((await asyncio.wrap_future(begun)).id).stop()

    def wait(self, record: PoolRecord, seconds: float) -> PoolRecord:
        """Wait for news of a pool."""
        return self._loop.run(self._wait(self._manager.get(record.id), record, seconds))

    async def _wait(self, pool: Pool, record: PoolRecord, seconds: float) -> PoolRecord:
        await pool.changed_since(record.version, seconds)
        return deepcopy(pool.record)

    def stop(self, pool_id: str) -> None:
        """Stop a pool."""
        self._loop.run(self._manager.get(pool_id).stop())

    def restart(self, pool_id: str, ranks: list[int] | None) -> PoolRecord:
        """Replace ranks."""
        return self._loop.run(self._restart(pool_id, ranks))

    def extend(self, pool_id: str, seconds: float | None) -> PoolRecord:
        """Let a pool run longer."""
        return self._loop.run(self._extend(pool_id, seconds))

    async def _extend(self, pool_id: str, seconds: float | None) -> PoolRecord:
        pool = self._manager.get(pool_id)
        await pool.commands.extend(seconds)
        return deepcopy(pool.record)

    def tell_lanes(self, pool_id: str, told: list[RankLanes]) -> None:
        """Do nothing: without a server, there is no timeline."""

    def forget(self) -> None:
        """Drop the zygotes."""
        self._loop.run(self._forget())

    async def _forget(self) -> None:
        self._manager.zygotes.drop()

    # -- pools that run already -------------------------------------------------------------

    def adopt(self, pool_id: str) -> PoolRecord:
        """Attach to a pool that another process has started.

        Raises
        ------
        DistError
            If no such pool runs.
        """
        found = next((one for one in find_pools() if one.id == pool_id), None)
        if found is None:
            raise DistError(
                "pool_not_found",
                f"There is no pool {pool_id}.",
                "%dist_attach without an ID lists your pools.",
            )
        return self._loop.run(self._adopt(found))

    def adopt_own(self, pool_id: str | None) -> PoolRecord | None:
        """Attach to this kernel's pool whose server is gone: the one named, or started for it."""
        kernel = kernel_id()
        for found in find_pools():
            started_for = found.config.record.kernel_id
            if found.id == pool_id or (kernel and started_for == kernel):
                record = self._loop.run(self._adopt(found))
                return record if record.ended is None else None
        return None

    async def _adopt(self, found: Found) -> PoolRecord:
        pool = self._manager.adopt(found)
        deadline = time.monotonic() + _SETTLE
        while pool.record.state in (PoolState.PENDING, PoolState.CONFIGURING):
            left = deadline - time.monotonic()
            if left <= 0:  # its ranks are being started, or replaced
                break
            await pool.changed_since(pool.record.version, left)
        return deepcopy(pool.record)

    def release(self, pool_id: str) -> None:
        """Leave a pool to those who hold it too."""
        self._loop.run(self._manager.release(pool_id))

    async def _restart(self, pool_id: str, ranks: list[int] | None) -> PoolRecord:
        pool = self._manager.get(pool_id)
        await pool.commands.restart(ranks, without_lost_nodes=ranks is None)
        return deepcopy(pool.record)


def _still_ending() -> DistError:
    return DistError(
        "start_cancelled",
        f"The start was cancelled {_CANCEL:.0f} s ago and has not ended yet: the driver or the "
        "cluster does not respond.",
        "It ends as soon as that responds. %dist_status shows whether a pool runs.",
    )
