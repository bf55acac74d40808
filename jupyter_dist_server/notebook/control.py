"""Starting and stopping pools from a kernel: through the server, or in this process without one."""

from __future__ import annotations

from typing import Any, Protocol

from ..pools.manager import PoolManager
from ..pools.pool import Pool
from ..pools.request import PoolRequest
from .loop import LoopThread

Record = dict[str, Any]
"""A pool as `PoolRecord.to_json` writes it."""


class Control(Protocol):
    """What the magics need of the one who owns the pools."""

    def find(self) -> Record | None:
        """Return the live pool of this kernel."""

    def start(self, request: dict[str, Any]) -> Record:
        """Begin to start a pool; `request` has the fields of `PoolRequest`."""

    def wait(self, record: Record, seconds: float) -> Record:
        """Return the pool's record once it is newer than `record`, or after some seconds."""

    def stop(self, pool_id: str) -> None:
        """Stop a pool and wait until nothing of it is left."""

    def interrupt(self, pool_id: str) -> None:
        """Send SIGINT to every rank."""

    def restart(self, pool_id: str) -> Record:
        """Begin to replace every rank."""


class LocalControl:
    """Pools owned by this very process; they end with it."""

    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop
        self._manager = PoolManager()

    def find(self) -> Record | None:
        """Return the pool that this kernel started."""
        for pool in self._manager.pools.values():
            if not pool.record.state.ended:
                return pool.record.to_json()
        return None

    def start(self, request: dict[str, Any]) -> Record:
        """Begin to start a pool."""
        return self._loop.run(self._start(PoolRequest.from_json(request)))

    async def _start(self, request: PoolRequest) -> Record:
        return (await self._manager.create(request)).record.to_json()

    def wait(self, record: Record, seconds: float) -> Record:
        """Wait for news of a pool."""
        return self._loop.run(self._wait(self._manager.get(record["id"]), record, seconds))

    async def _wait(self, pool: Pool, record: Record, seconds: float) -> Record:
        await pool.changed_since(record["version"], seconds)
        return pool.record.to_json()

    def stop(self, pool_id: str) -> None:
        """Stop a pool."""
        self._loop.run(self._manager.get(pool_id).stop())

    def interrupt(self, pool_id: str) -> None:
        """Interrupt all ranks."""
        self._loop.run(self._do(pool_id, "interrupt"))

    def restart(self, pool_id: str) -> Record:
        """Replace all ranks."""
        return self._loop.run(self._do(pool_id, "restart"))

    async def _do(self, pool_id: str, command: str) -> Record:
        pool = self._manager.get(pool_id)
        getattr(pool, command)()
        return pool.record.to_json()
