"""Since when a pool is idle: no cell runs on its ranks, and its GPUs have no load."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..common.background_tasks import Tasks
from ..common.policy import read_policy
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_record import PoolRecord, PoolState
from ..common.units import write_limit
from ..gpus.nvml import UNSUPPORTED
from ..gpus.readers.read_gpu_state import read_gpu_state
from ..jobs.schedule.board import posted, wants_of

_LOG = logging.getLogger(__name__)

_AFTER = 60.0
"""Seconds after which a pool without a cell counts as idle."""


def follows_idleness(record: PoolRecord) -> bool:
    """Tell whether something happens to a pool once it is idle for long."""
    return record.idle_limit is not None or record.park_after is not None


@dataclass(eq=False)
class Idleness:
    """Follows whether a pool is idle; ends it at its limit, and parks it for those who wait."""

    _record: PoolRecord
    _tell: Callable[[float | None], None]
    _end: Callable[[Reason], None]
    _park: Callable[[], Awaitable[None]]
    _tasks: Tasks
    _used: float = 0.0
    """When it was in use, though no cell ran."""
    _timer: asyncio.TimerHandle | None = None
    _tried: float = 0.0
    """When it was parked, or could not be."""

    def look(self) -> None:
        """Look at the ranks; called after each change of the record."""
        if self._idle_since() is None:
            self._note(None)
        elif self._timer is None and self._record.idle_since is None:
            self._look_after(0.0)

    def note_use(self, when: float) -> None:
        """Note that somebody has asked for the pool to go on."""
        if when > self._used:
            self._used = when
            self._note(None)

    def close(self) -> None:
        """Stop following it."""
        if self._timer:
            self._timer.cancel()

    def _idle_since(self) -> float | None:
        ranks = self._record.ranks
        if self._record.state is not PoolState.RUNNING or any(
            rank.state not in ("idle", "dead") for rank in ranks
        ):
            return None
        return max([self._used, *(rank.since for rank in ranks)])

    def _note(self, since: float | None) -> None:
        if since != self._record.idle_since:
            self._tell(since)

    def _look_after(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, lambda: self._tasks.add(self._check()))

    async def _check(self) -> None:
        """Look whether it is idle for long enough; called by a timer, not for each cell.

        With a limit, or if it may be parked, it is looked at repeatedly.
        """
        limit, park_after = self._record.idle_limit, self._record.park_after
        after = min([_AFTER, *(given / 2 for given in (limit, park_after) if given is not None)])
        if self._seconds_idle() >= after:
            busy = await self._gpus_are_busy()
            if busy is None:
                self._look_after(after)
                return
            if busy:
                self._used = time.time()
        idle = self._seconds_idle()
        self._timer = None
        if 0 <= idle < after:
            self._look_after(after - idle)
        elif limit is not None and 0 <= idle < limit:
            self._look_after(min(after, limit - idle))
        elif park_after is not None and idle >= 0:
            self._look_after(after)
        self._note(self._idle_since() if idle >= after else None)
        if limit is not None and idle >= limit:
            self._end(_idle_for(limit))
        elif park_after is not None and idle >= park_after:
            await self._park_if_wanted(park_after)

    async def _park_if_wanted(self, park_after: float) -> None:
        """Park it if somebody waits; one that could not be parked is left alone for as long."""
        if (
            time.time() - self._tried >= park_after
            and await self._is_waited_for()
            and self._seconds_idle() >= park_after  # a cell may have run meanwhile
        ):
            self._tried = time.time()
            await self._park()

    async def _is_waited_for(self) -> bool:
        """Tell whether somebody waits in line for a GPU of this pool."""
        uuids = {rank.gpu.uuid for rank in self._record.ranks if rank.gpu}
        boards = await asyncio.to_thread(posted)
        return any(want.gpus and uuids & (want.only or uuids) for want in wants_of(boards))

    def _seconds_idle(self) -> float:
        """Return for how long it is idle; less than 0 while it is not."""
        since = self._idle_since()
        return -1.0 if since is None else max(0.0, time.time() - since)

    async def _gpus_are_busy(self) -> bool | None:
        """Tell whether the pool's GPUs have a load; `None` if NVML does not answer.

        GPUs that never report it, as MIG instances, and those of other nodes do not count.
        """
        uuids = {rank.gpu.uuid for rank in self._record.ranks if rank.gpu}
        if not uuids:
            return False
        seen = await read_gpu_state()
        why = seen.inventory.fault if seen.no_answer else ""
        for uuid in uuids & seen.samples.keys():
            load = seen.samples[uuid].get("utilization")
            if isinstance(load, int | float) and load >= read_policy()[0].idle_load:
                return True
            error = seen.errors.get(uuid, {}).get("utilization")
            if load is None and error != UNSUPPORTED:
                why = f"The utilization of {uuid} cannot be read: {error}."
        if why:
            _LOG.warning("It is unknown whether pool %s is idle: %s", self._record.id, why)
        return None if why else False


def _idle_for(limit: float) -> Reason:
    return Reason(
        "idle_limit",
        f"No cell had run on the pool for {write_limit(limit)}, its idle limit, so it was stopped.",
        "Start a new one with %dist_init and a longer --idle-limit.",
    )
