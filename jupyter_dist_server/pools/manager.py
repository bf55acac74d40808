"""All pools of one owner: at most one per notebook kernel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..errors import DistError
from ..gpus.inventory import inventory
from .pool import Pool
from .request import PoolRequest

Listener = Callable[[Pool], None]


class PoolManager:
    """Start, find and stop pools.

    Parameters
    ----------
    watch : bool
        Whether pools follow which of their ranks are busy.

    Attributes
    ----------
    pools : dict
        By id. Of the ended pools, the last one of each kernel is kept, to say why it ended.
    """

    def __init__(self, watch: bool = False) -> None:
        self.pools: dict[str, Pool] = {}
        self._watch = watch
        self._listeners: set[Listener] = set()
        self._removal_listeners: set[Callable[[str], None]] = set()
        self._starting: set[str] = set()

    def listen(self, changed: Listener, removed: Callable[[str], None]) -> Callable[[], None]:
        """Call back at each change of a pool, and with its id when one is forgotten.

        Returns
        -------
        callable
            Stops the calls.
        """
        self._listeners.add(changed)
        self._removal_listeners.add(removed)

        def stop() -> None:
            self._listeners.discard(changed)
            self._removal_listeners.discard(removed)

        return stop

    async def create(self, request: PoolRequest) -> Pool:
        """Begin to start a pool.

        Raises
        ------
        DistError
            If the kernel has a pool already, or the request cannot be placed.
        """
        kernel = request.kernel_id
        if (running := self.for_kernel(kernel)) or kernel in self._starting:
            size = f" of {running.record.world_size} ranks" if running else ""
            state = f" is {running.record.state.value}" if running else " is starting"
            raise DistError(
                "pool_exists",
                f"This notebook has a pool already: a pool{size}{state}.",
                "Stop it with %dist_shutdown before you start another.",
            )
        if kernel:
            self._starting.add(kernel)
        try:
            pool = Pool(request, await inventory(), self._on_change, self._watch)
        finally:
            self._starting.discard(kernel or "")
        self._forget_ended(kernel)
        self.pools[pool.record.id] = pool
        pool.start()
        return pool

    def get(self, pool_id: str) -> Pool:
        """Return a pool.

        Raises
        ------
        DistError
            If there is none with this id.
        """
        try:
            return self.pools[pool_id]
        except KeyError:
            raise DistError("pool_not_found", f"There is no pool {pool_id}.") from None

    def for_kernel(self, kernel_id: str | None) -> Pool | None:
        """Return the live pool of a kernel."""
        for pool in self.pools.values():
            if kernel_id and pool.record.kernel_id == kernel_id and not pool.record.state.ended:
                return pool
        return None

    async def stop_for_kernel(self, kernel_id: str) -> None:
        """Stop the pool of a kernel that is gone for good, and forget it."""
        if pool := self.for_kernel(kernel_id):
            await pool.stop()
        self._forget_ended(kernel_id)

    async def stop_all(self) -> None:
        """Stop every pool."""
        await asyncio.gather(*(pool.stop() for pool in list(self.pools.values())))

    def _forget_ended(self, kernel_id: str | None) -> None:
        for pool_id, pool in list(self.pools.items()):
            if pool.record.state.ended and pool.record.kernel_id == kernel_id:
                del self.pools[pool_id]
                for removed in list(self._removal_listeners):
                    removed(pool_id)

    def _on_change(self, pool: Pool) -> None:
        for changed in list(self._listeners):
            changed(pool)
