"""The clients that run code on ranks for REST: one for each pool, shared by all requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ...client.pool_client import PoolClient
from ...common.background_tasks import Tasks, within
from ...common.errors import DistError
from ...common.protocol.pool_record import PoolState
from ...pools.pool import Pool


class _Shared:
    """A client of a pool's current ranks, and the number of its users."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.generation = pool.record.generation
        self.client = PoolClient(Path(pool.record.folder))
        self.connected = asyncio.create_task(self.client.connect())
        # All callers may have left by then; the next one connects again.
        self.connected.add_done_callback(lambda task: task.cancelled() or task.exception())
        self.users = 0

    @property
    def is_current(self) -> bool:
        """Whether a new caller can use it."""
        failed = self.connected.done() and (
            self.connected.cancelled() or self.connected.exception() is not None
        )
        old = self.generation != self.pool.record.generation
        return not (failed or old or self.client.link.closed.is_set())

    async def close(self) -> None:
        self.connected.cancel()
        await self.client.close()


class Clients:
    """One client for each pool; a silent pool keeps only its own callers waiting."""

    def __init__(self) -> None:
        self._current: dict[str, _Shared] = {}
        self._retired: set[_Shared] = set()
        """Clients whose ranks were replaced: they end with their last execution."""
        self._tasks = Tasks()

    @asynccontextmanager
    async def use(self, pool: Pool, limit: float | None = None) -> AsyncIterator[PoolClient]:
        """Lend a connected client, unless the pool is not running or does not answer.

        One that is parked is resumed; it goes on to wait for its GPUs after `limit` seconds.
        """
        try:
            await within(pool.parker.ready(), limit)
        except asyncio.TimeoutError:
            message = "The pool is parked, and waits for its GPUs."
            raise DistError("pool_parked", message, "Try again later.") from None
        state = pool.record.state
        if state is not PoolState.RUNNING:
            raise DistError(
                "pool_not_running", f"The pool cannot run code: its state is {state.value}."
            )
        self._retire_old(pool)
        shared = self._current.get(pool.record.id)
        if shared is None:
            try:
                shared = self._current[pool.record.id] = _Shared(pool)
            except FileNotFoundError:  # its folder is gone
                raise DistError("pool_not_running", "The pool has just ended.") from None
        shared.users += 1
        try:
            await asyncio.shield(shared.connected)
            yield shared.client
        finally:
            shared.users -= 1
            self._close_unused()

    def _retire_old(self, pool: Pool) -> None:
        for pool_id, shared in list(self._current.items()):
            adopted_anew = pool_id == pool.record.id and shared.pool is not pool
            if adopted_anew or not shared.is_current:
                self._retired.add(self._current.pop(pool_id))
        self._close_unused()

    def _close_unused(self) -> None:
        for shared in [one for one in self._retired if not one.users]:
            self._retired.discard(shared)
            self._tasks.add(shared.close())

    async def close(self) -> None:
        """Disconnect from all pools; running cells continue."""
        everything = [*self._current.values(), *self._retired]
        self._current.clear()
        self._retired.clear()
        await asyncio.gather(*(shared.close() for shared in everything))
        await self._tasks.cancel()
