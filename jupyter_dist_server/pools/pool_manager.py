"""All pools of one owner: at most one per notebook kernel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import msgspec

from ..common.background_tasks import Tasks
from ..common.errors import DistError
from ..common.files.open_files import CLIENT_EACH, SERVER_EACH, check_open_files, raise_limit
from ..common.policy import allowed_idle_limit, allowed_limit, allowed_park_after
from ..common.protocol.agents.attachment import SERVER, Owner
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_record import PoolState
from ..placement.allocate_gpus import Allocator
from ..placement.new_pool_record import new_record
from ..placement.ranks_to_gpus import GpusTaken
from ..placement.ranks_to_nodes import spread
from ..placement.requests.request import PoolRequest
from .discovery import Found, find_pools
from .end_reasons import start_cancelled
from .idleness import follows_idleness
from .pool import DEFAULT_TIMEOUT, Pool
from .processes.start_agent import Launch
from .processes.zygote_registry import ZygoteRegistry

_LOG = logging.getLogger(__name__)

Listener = Callable[[Pool], None]
T = TypeVar("T")

_KEPT = 20
"""How many ended pools without a kernel are kept, to show why they ended."""


class PoolManager:
    """Starts, finds, adopts and stops pools; with `watch`, pools follow which ranks are busy.

    `keep_warm` is how long a zygote is kept after the last pool, in seconds; 0 is for having none.
    `engine` starts ranks on other nodes if a request does not say; empty for the cluster around us.
    """

    def __init__(
        self,
        watch: bool = False,
        owner: Owner | None = None,
        keep_warm: float = 0.0,
        engine: str = "",
    ) -> None:
        self.pools: dict[str, Pool] = {}
        """Of ended ones, the last of each kernel and the last `_KEPT` without a kernel."""
        self.zygotes = ZygoteRegistry(keep_warm)
        raise_limit()  # also for the pools that we adopt
        self._watch = watch
        self.engine = engine
        self._owner = owner or Owner()
        self._listeners: set[Listener] = set()
        self._removal_listeners: set[Callable[[str], None]] = set()
        self._starting: set[str] = set()
        self._is_over = False
        """Whether all pools were stopped or released; no other one starts then."""
        self._tasks = Tasks()

    def listen(self, changed: Listener, removed: Callable[[str], None]) -> Callable[[], None]:
        """Call back at each change of a pool, and with its ID when it is forgotten."""
        self._listeners.add(changed)
        self._removal_listeners.add(removed)

        def stop() -> None:
            self._listeners.discard(changed)
            self._removal_listeners.discard(removed)

        return stop

    async def create(self, request: PoolRequest) -> Pool:
        """Begin to start a pool; it is `PENDING` while it waits for GPUs, if it may."""
        kernel = request.kernel_id
        if (running := self.for_kernel(kernel)) or kernel in self._starting:
            count = running.record.world_size if running else 0  # while it waits in line, too
            size = f" of {count} ranks" if count else ""
            state = f" is {running.record.state.value}" if running else " is starting"
            raise DistError(
                "pool_exists",
                f"This notebook already has a pool: a pool{size}{state}.",
                "Stop it with %dist_shutdown before you start another.",
            )
        allocation = None
        if kernel:
            self._starting.add(kernel)
        try:
            is_given = request.time_limit is not None
            limit = await asyncio.to_thread(allowed_limit, request.time_limit, is_given)
            idle_limit = await asyncio.to_thread(allowed_idle_limit, request.idle_limit)
            park_after = await asyncio.to_thread(allowed_park_after, request.park_after)
            request = replace(
                request, time_limit=limit, idle_limit=idle_limit, park_after=park_after
            )
            record = new_record(request)
            here, nodes = await asyncio.to_thread(spread, request, self.engine)
            allocator = Allocator(here, record)
            allocation = await allocator.now()
            fields = nodes.fields(allocation.fields) if nodes else allocation.fields
            record = msgspec.structs.replace(record, **fields)
        except GpusTaken as error:
            if request.wait is None:
                if nodes:
                    error.message = f"On node {nodes.nodes[0].name}: {error.message}"
                raise
        finally:
            was_shut_down = kernel and kernel not in self._starting
            self._starting.discard(kernel or "")
        try:
            if was_shut_down or self._is_over:  # meanwhile
                raise start_cancelled()
            check_open_files(record.world_size, SERVER_EACH if self._watch else CLIENT_EACH)
        except DistError:
            if allocation:
                allocation.close()
            raise
        timeout = request.timeout or DEFAULT_TIMEOUT
        watch = self._watch or follows_idleness(record)
        pool = Pool(record, self._on_change, self._owner, watch, timeout)
        self._forget_ended_of(kernel)
        self.pools[record.id] = pool
        pool.start(Launch(request, self._owner, self.zygotes, allocator, allocation, nodes))
        return pool

    async def adopt_unserved(self) -> list[Pool]:
        """Adopt the pools of a server that has ended."""
        found = await asyncio.to_thread(lambda: list(find_pools()))
        lost = [one for one in found if one.config.owner_kind == SERVER and not one.has_server]
        return [self.adopt(one) for one in lost]

    def adopt(self, found: Found) -> Pool:
        """Attach to a pool that runs already; if we are attached, return it as it is."""
        if (ours := self.pools.get(found.id)) and not ours.record.state.ended:
            return ours
        pool = Pool.found(found, self._on_change, self._owner, self._watch)
        self.pools[found.id] = pool
        pool.adopt()
        return pool

    async def release(self, pool_id: str) -> None:
        """Forget a pool and let it go on without us."""
        await self.pools.pop(pool_id).release()
        self._tell_removed(pool_id)

    def get(self, pool_id: str) -> Pool:
        """Return a pool; raise `DistError` if there is none with this ID."""
        try:
            return self.pools[pool_id]
        except KeyError:
            raise DistError("pool_not_found", f"There is no pool {pool_id}.") from None

    def live(self) -> list[Pool]:
        """Return the pools that have not ended."""
        return [pool for pool in self.pools.values() if not pool.record.state.ended]

    def for_kernel(self, kernel_id: str | None) -> Pool | None:
        """Return the live pool of a kernel."""
        return next((p for p in self.live() if kernel_id and p.record.kernel_id == kernel_id), None)

    async def stop_for_kernel(self, kernel_id: str) -> None:
        """Stop the pool of a kernel that has ended for good, unless another notebook uses it."""
        self._starting.discard(kernel_id)
        if (pool := self.for_kernel(kernel_id)) and not self.hand_over(pool):
            await pool.stop()
        self._forget_ended_of(kernel_id)

    def hand_over(self, pool: Pool) -> bool:
        """Give the pool of an ended kernel to another notebook that uses it, if there is one."""
        for attachment in pool.record.attachments:
            successor = attachment.kernel_id
            if successor and successor != pool.record.kernel_id and not self.for_kernel(successor):
                pool.change(kernel_id=successor)
                return True
        return False

    def stop_later(self, pool: Pool, why: Reason) -> None:
        """Begin to stop a pool that nobody has asked to be stopped."""
        if pool.record.state is not PoolState.COMPLETING:
            self._tasks.add(pool.stop(why))

    async def stop_all(self) -> None:
        """Stop every pool, and keep no zygote; starts that have just begun are cancelled."""
        self._is_over = True
        await asyncio.gather(*(pool.stop() for pool in list(self.pools.values())))
        await self.zygotes.close()

    async def release_all(self) -> None:
        """Let every pool go on without us, and keep no zygote; as `stop_all`, cancel starts."""
        self._is_over = True
        await asyncio.gather(*(self.release(pool.record.id) for pool in self.live()))
        await self.zygotes.close()

    def _forget_ended_of(self, kernel_id: str | None) -> None:
        """Forget a kernel's ended pools; of those without a kernel, the oldest."""
        ended = [
            pool_id
            for pool_id, pool in self.pools.items()
            if pool.record.state.ended and pool.record.kernel_id == kernel_id
        ]
        for pool_id in ended if kernel_id else ended[:-_KEPT]:
            del self.pools[pool_id]
            self._tell_removed(pool_id)

    def _tell_removed(self, pool_id: str) -> None:
        for removed in list(self._removal_listeners):
            _tell(removed, pool_id)

    def _on_change(self, pool: Pool) -> None:
        self.zygotes.set_idle(not self.live())
        for changed in list(self._listeners):
            _tell(changed, pool)


def _tell(listener: Callable[[T], None], news: T) -> None:
    """Call a listener; its error must affect neither the pool nor other listeners."""
    try:
        listener(news)
    except Exception:
        _LOG.exception("A listener of the pools failed")
