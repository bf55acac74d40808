"""The GPUs of one pool: chosen, leased, and waited for if they are in use."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from ..common.errors import DistError
from ..common.protocol.records import PoolRecord
from ..gpus.gpu_state import GpuState, read_gpu_state
from ..gpus.inventory import Inventory
from ..jobs.lease import GpuTaken, Lease, holders
from ..jobs.line import Ticket, in_line
from ..jobs.shared_folder import owner_notice
from .assignment import GpusTaken, Placement, counts_differ
from .conflicts import Processes, foreign, may_be_ending, taken
from .policies import candidates
from .pool_record import allowed, assigned, place_ranks
from .request import PoolRequest

_ASK_EVERY = 0.25
"""Seconds between two looks at leases and line, while waiting."""
_READ_EVERY = 3.0
"""Seconds between two readings of NVML, while only processes outside of pools are waited for."""
_LOOKS, _ENDING = 4, 0.3
"""How often processes are looked at that may be ending, and seconds in between."""
_TRIES, _PAUSE = 5, 0.05
"""How often GPUs are asked for that somebody takes, or looks at, at the same moment, and seconds in
between."""

Read = Callable[[], Awaitable[GpuState]]
Line = Callable[[], list[dict[str, Any]]]
"""Returns who comes first."""


@dataclass
class Allocation:
    """What a pool was given; closing it leaves its lease to the agent."""

    placement: Placement
    lease: Lease | None = None
    leased: str | None = None
    """``exclusive`` or ``shared``, if it is."""

    @property
    def fields(self) -> dict[str, Any]:
        """What the pool's record says of it."""
        return assigned(self.placement, self.leased)

    @property
    def descriptors(self) -> list[int]:
        """What an agent has to be given to hold the lease."""
        return self.lease.descriptors if self.lease else []

    def close(self) -> None:
        """Hold the lease no longer; it ends unless an agent has it by now."""
        if self.lease:
            self.lease.close()


class Allocator:
    """Gets GPUs for one pool.

    Parameters
    ----------
    request : PoolRequest
        What was asked for.
    record : PoolRecord
        Of the pool; names it to others.
    read : callable
        Reads NVML.
    """

    def __init__(
        self, request: PoolRequest, record: PoolRecord, read: Read = read_gpu_state
    ) -> None:
        self._request = request
        self._read = read
        self._who = {
            "pid": os.getpid(),
            "since": record.created,
            "pool": record.id,
            "notebook": record.name,
            "host": record.host,
        }
        self._inventory = Inventory()
        self._seen = GpuState(self._inventory)

    async def now(self) -> Allocation:
        """Get GPUs at once.

        Raises
        ------
        GpusTaken
            If others have them, or wait for them; the message says who.
        DistError
            If the request can never be met.
        """
        await self._look()
        return await self._get(in_line)

    async def in_line(self, tell: Callable[[str], None]) -> Allocation:
        """Wait behind all who came before, for as long as the request says; after `now` has failed.

        Parameters
        ----------
        tell : callable
            Called with the reason for waiting, whenever it is another one.

        Raises
        ------
        GpusTaken
            If they can't be had in time.
        DistError
            If the request can never be met.
        """
        assert self._request.wait is not None
        until, read_at = time.monotonic() + self._request.wait, -math.inf
        reason = ""
        wanted = {gpu.uuid for gpu in candidates(self._request, self._inventory)}
        with Ticket(self._who | {"since": time.time()}, wanted) as ticket:
            while True:
                try:
                    # NVML is read only when nobody leases them; what it said before is old by now.
                    await self._place(
                        ticket.ahead, {}, replace(self._request, min_free_memory=None)
                    )
                    if time.monotonic() > read_at + _READ_EVERY:
                        read_at = time.monotonic()
                        await self._look()
                        if not self._inventory.gpus:
                            raise DistError(
                                "no_gpu", f"Timed out waiting for GPUs. {self._inventory.reason}"
                            )
                        return await self._get(ticket.ahead)
                except GpusTaken as error:
                    if error.message != reason:
                        reason = error.message
                        tell(reason)
                if time.monotonic() > until:
                    raise GpusTaken(
                        f"Timed out after {self._request.wait:g} s waiting for GPUs. {reason}",
                        "Choose other GPUs, or wait longer.",
                    )
                await asyncio.sleep(_ASK_EVERY)

    async def _look(self) -> None:
        """Read NVML, and again as long as there are processes that may just be ending."""
        for _ in range(_LOOKS):
            self._seen = await self._read()
            self._inventory = allowed(self._request, self._seen.inventory)
            leased = await asyncio.to_thread(holders, self._inventory)
            strangers = [
                row
                for gpu in self._inventory.gpus
                if gpu.uuid not in leased
                for row in foreign(self._request, self._seen.processes.get(gpu.uuid, []))
            ]
            if self._request.force or not any(map(may_be_ending, strangers)):
                break
            await asyncio.sleep(_ENDING)

    async def _place(self, ahead: Line, processes: Processes, request: PoolRequest) -> Placement:
        # In threads, as these files are also other users', who may have made many.
        leases = await asyncio.to_thread(holders, self._inventory)
        line = await asyncio.to_thread(ahead) if self._inventory.gpus else []
        reasons = taken(request, leases, processes, line)
        placement = place_ranks(request, self._inventory, self._seen.samples, reasons)
        # Also where an inherited mask hides what makes CUDA count differently.
        return replace(placement, by_uuid=counts_differ(self._seen.inventory))

    async def _get(self, ahead: Line) -> Allocation:
        for _ in range(_TRIES):
            placement = await self._place(ahead, self._seen.processes, self._request)
            uuids = [gpu.uuid for gpu in placement.used]
            if not uuids:
                return Allocation(placement)
            try:
                lease = await _take(uuids, self._who, self._request.oversubscribe)
            except GpuTaken:  # somebody was faster, and is seen the next time; or just looks at it
                await asyncio.sleep(_PAUSE)
            else:
                if notice := owner_notice():
                    placement = replace(placement, notices=(*placement.notices, notice))
                return Allocation(
                    placement, lease, "shared" if self._request.oversubscribe else "exclusive"
                )
        raise GpusTaken(
            "Lost a race for these GPUs: other pools lease and release them.", "Try again."
        )


async def _take(uuids: list[str], who: dict[str, Any], shared: bool) -> Lease:
    """Lease GPUs in a thread; if we are cancelled meanwhile, give them back."""
    taking = asyncio.ensure_future(asyncio.to_thread(Lease.take, uuids, who, shared))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        taking.add_done_callback(_give_back)
        raise


def _give_back(taken: asyncio.Future[Lease]) -> None:
    if not taken.exception():
        taken.result().close()
