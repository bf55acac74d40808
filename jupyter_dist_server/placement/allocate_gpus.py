"""The GPUs of one pool: chosen, leased, and waited for if they are in use."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import replace

import msgspec

from ..common.errors import DistError
from ..common.files.shared_folder import folder, owner_notice
from ..common.policy import check_gpus, watched_folder
from ..common.protocol.leaseholder import Leaseholder
from ..common.protocol.offers import InLine
from ..common.protocol.pool_record import PoolRecord
from ..common.users import name_of
from ..gpus.cuda_visible_devices import counts_differ, hides_all
from ..gpus.gpu_state import GpuState
from ..gpus.inventory import Inventory
from ..gpus.readers.read_gpu_state import read_gpu_state
from ..gpus.used_without_lease import GpuUse, in_use
from ..jobs.file_changes import Wake
from ..jobs.leases.lease import GpuTaken, Lease, holders
from ..jobs.schedule.board import POOL, Board, Posted, order_lock, posted
from ..jobs.schedule.situation import Situation, Waiting, first, situation, where_in_line
from ..jobs.schedule.trust import Trust
from ..jobs.schedule.wants import Machine, Want
from .gpu_policies import candidates
from .new_pool_record import Allocation
from .number_of_ranks import environment_of, number_of_ranks
from .offers import with_offers
from .ranks_to_gpus import GpusTaken, GpusUnknown, allowed, place_ranks
from .requests.request import PoolRequest
from .unavailable_gpus import foreign, may_be_ending, unavailable
from .while_kernel_lives import while_kernel_lives

_READ_EVERY = 3.0
"""Seconds between two readings of NVML, while only processes outside pools use the GPUs."""

Read = Callable[[], Awaitable[GpuState]]
Tell = Callable[[str, InLine | None], None]


class Allocator:
    """Gets GPUs for one pool, which its record names to others.

    `read` reads NVML. For a pool that has GPUs already, these are `besides`, by UUID, and `lease`
    names the lease of what is added.
    """

    def __init__(
        self,
        request: PoolRequest,
        record: PoolRecord,
        read: Read = read_gpu_state,
        lease: str = "",
        besides: Collection[str] = (),
    ) -> None:
        self._request = request
        self._record = record
        self._queued = record.created
        self._read = read
        self._lease, self._besides = lease, besides
        self._who = Leaseholder(
            pid=os.getpid(),
            pool=record.id,
            notebook=record.name,
            host=record.host,
            park_after=record.park_after,
        )
        self._inventory = Inventory()
        self._seen = GpuState(self._inventory)
        self._uses: dict[str, GpuUse] = {}
        """What used GPUs that nobody leased when NVML was read."""
        self._board = Board(POOL)
        self._trust = Trust()
        self._head_since = math.inf
        """Since when we are the first in line, but do not fit."""
        self._late: float | None = None
        """Seconds after which to look again: waiting processes before us that take nothing are
        passed over then, or other GPUs are closed."""
        self._there = Situation(Machine(), [], [], {}, 0.0)
        self._ahead: list[Waiting] = []
        """The waiting jobs and pools that come before us."""
        self._line: InLine | None = None
        """Our place in line."""

    @property
    def inventory(self) -> Inventory:
        """The GPUs that may be used, as of the last reading."""
        return self._inventory

    async def now(self) -> Allocation:
        """Get GPUs at once; raise `GpusTaken`, with what can be done instead, if others have them.

        A plain `DistError` says that the request can never be met.
        """
        await self._look()
        if self._inventory.gpus:
            check_gpus(self._want().gpus)
        try:
            return await self._get()
        except GpusTaken as error:
            samples, uses = self._seen.samples, in_use(self._seen)

            def reasons(request: PoolRequest) -> dict[str, str]:
                return self._reasons(request, uses)

            raise with_offers(
                error, self._request, self._inventory, samples, reasons, self._line
            ) from None

    async def in_line(self, tell: Tell) -> Allocation:
        """Wait for our turn for as long as the request says; after `now` has failed.

        Our entry is among those of all that wait, see `jobs.plan`. It ends with the notebook's
        kernel. `tell` is called with the reason for waiting and our place in line, whenever they
        change. Raises `GpusTaken` if there are none in time, and `DistError` if the request can
        never be met, or the kernel has ended.
        """
        return await while_kernel_lives(self._request.kernel_pid, self._wait(tell))

    async def _wait(self, tell: Tell) -> Allocation:
        assert self._request.wait is not None
        until, read_at = time.monotonic() + self._request.wait, -math.inf
        reason, line = "", None
        self._queued = time.time()
        wake = Wake([folder(), watched_folder()])
        with closing(self._board), closing(wake):
            while True:
                self._show()
                pause = None
                try:
                    try:
                        await self._place(self._uses, False)
                    except GpusTaken:
                        # NVML is read only once they have no lease: the last reading is old then.
                        if await asyncio.to_thread(self._may_fit):
                            pause = read_at + _READ_EVERY - time.monotonic()
                        if pause is None or pause > 0:
                            raise
                    read_at, pause = time.monotonic(), _READ_EVERY
                    await self._look()
                    if not self._inventory.gpus:
                        why = f"Timed out waiting for GPUs. {self._inventory.reason}"
                        raise DistError("no_gpu", why)
                    return await self._get()
                except GpusTaken as error:
                    self._show()
                    if (error.message, self._line) != (reason, line):
                        reason, line = error.message, self._line
                        tell(reason, line)
                left = until - time.monotonic()
                if left <= 0:
                    raise GpusTaken(
                        f"Timed out after {self._request.wait:g} s waiting for GPUs. {reason}",
                        "Choose other GPUs, or wait longer.",
                    )
                waits = [left, *(wait for wait in (pause, self._late) if wait is not None)]
                await wake.changed(min(*waits, 1e6))  # event loops cannot count much further

    async def _look(self) -> None:
        """Read NVML, and again as long as there are processes that may just be ending."""
        for _ in range(4):
            seen = await self._read()
            needs_gpus = self._request.on_gpus and not hides_all(environment_of(self._request))
            if seen.no_answer and needs_gpus:
                raise GpusUnknown(seen.inventory.fault)
            self._seen = seen
            self._inventory = self._allowed(seen)
            leased = await asyncio.to_thread(holders, self._inventory)
            self._uses = in_use(replace(seen, inventory=self._inventory), leased)
            if not any(map(may_be_ending, foreign(self._request, self._uses).values())):
                break
            await asyncio.sleep(0.3)

    def _allowed(self, seen: GpuState) -> Inventory:
        found = allowed(self._request, seen.inventory)
        others = tuple(gpu for gpu in found.gpus if gpu.uuid not in self._besides)
        if found.gpus and not others:
            hint = "Start another pool with %dist_init -n if ranks may share GPUs."
            raise DistError("not_enough_gpus", "The pool has all GPUs of this machine.", hint)
        return replace(found, gpus=others)

    def _show(self) -> None:
        """Show our entry to all that wait, once it is known which GPUs there are."""
        if self._inventory.gpus:
            uuids = [gpu.uuid for gpu in self._seen.inventory.gpus]
            self._board.show([self._want()], uuids)

    def _want(self) -> Want:
        """Return our entry in the line of all that wait."""
        asked = self._request.on_gpus
        assert asked  # or there were no GPUs, see `allowed`
        chosen = list(dict.fromkeys(candidates(asked, self._inventory)))
        count = number_of_ranks(asked)
        if asked.policy in ("ids", "map"):
            chosen = chosen[: count or len(chosen)]
            count = len(chosen)
        return Want(
            self._record.id,
            name_of(os.getuid()),
            self._queued,
            gpus=min(asked.min_ranks or count or 1, len(chosen)),
            only=frozenset(gpu.uuid for gpu in chosen),
            limit=self._request.time_limit,
            share=0 if self._request.oversubscribe else None,
            force=self._request.force,
            head_since=self._head_since,
            name=self._record.name,
        )

    def why_unavailable(self, seen: GpuState) -> dict[str, str]:
        """Tell why GPUs are not available now, see `unavailable`; not for an event loop."""
        self._seen, self._inventory = seen, self._allowed(seen)
        return self._unavailable(in_use(seen))

    def _unavailable(self, uses: Mapping[str, GpuUse]) -> dict[str, str]:
        """Look at leases, and at the boards of all that come before us."""
        want, boards, there = self._situation(uses)
        wanted = there.plan()
        is_head = wanted.head is not None and wanted.head.id == want.id
        self._head_since = min(self._head_since, time.time()) if is_head else math.inf
        change = there.machine.rules.next_change(there.now)
        waits = (self._trust.note(boards, wanted), change and change - there.now)
        self._late = min((wait for wait in waits if wait is not None), default=None)
        self._line = where_in_line(there, wanted, want)
        self._there, self._ahead = there, first(there, wanted, want)
        return self._reasons(self._request, uses)

    def _reasons(self, request: PoolRequest, uses: Mapping[str, GpuUse]) -> dict[str, str]:
        """Tell why GPUs are not available, as `unavailable` does, and by the rules."""
        there, want = self._there, self._want()
        rules = there.machine.rules
        uuids = sorted(there.machine.gpus, key=lambda uuid: uuid not in (want.only or ()))
        closed = {
            uuid: found
            for uuid in uuids
            if (found := rules.closure(uuid, want.user, there.now, want.limit))
        }
        reasons = unavailable(request, there.leases, uses, self._ahead, closed)
        left = max(0.0, there.running.gpus_left(want.user))
        if left < len(uuids) and (exceeded := there.running.exceeded(want.user, int(left) + 1)):
            free = [uuid for uuid in uuids if uuid not in reasons]
            why = exceeded[1].rstrip(".")
            reasons |= dict.fromkeys(free[int(left) :], f"not for you now: {why}")
        return reasons

    def _situation(self, uses: Mapping[str, GpuUse]) -> tuple[Want, list[Posted], Situation]:
        want = self._want()
        others = [board for board in posted() if board.file != self._board.name]
        boards = self._trust.who_counts(others)
        blocked = foreign(self._request, uses)
        return want, boards, situation(self._seen, [want], boards, blocked=blocked)

    def _may_fit(self) -> bool:
        """Tell whether nothing but, perhaps, processes without a lease is in the way."""
        want, _, there = self._situation({})
        self._there, self._ahead = there, first(there, there.plan(), want)
        reasons = self._reasons(self._request, {})
        request = replace(self._request, min_free_memory=None)
        with suppress(GpusTaken):
            place_ranks(request, self._inventory, self._seen.samples, reasons)
            return True
        return False

    async def _place(self, uses: Mapping[str, GpuUse], take: bool) -> Allocation:
        """Decide which GPUs ranks get, and lease them if `take`."""
        working = asyncio.ensure_future(asyncio.to_thread(self._turn, uses, take))
        try:
            return await asyncio.shield(working)
        except asyncio.CancelledError:
            working.add_done_callback(_give_back)
            raise

    def _turn(self, uses: Mapping[str, GpuUse], take: bool) -> Allocation:
        # In a thread: some files are those of other users, and there may be many.
        if not self._inventory.gpus:
            return Allocation(place_ranks(self._request, self._inventory, self._seen.samples, {}))
        with order_lock() if take else nullcontext():
            reasons = self._unavailable(uses)
            placement = place_ranks(self._request, self._inventory, self._seen.samples, reasons)
            # Also where an inherited mask hides what makes CUDA count differently.
            placement = replace(placement, by_uuid=counts_differ(self._seen.inventory))
            uuids = [gpu.uuid for gpu in placement.used]
            if not uuids or not take:
                return Allocation(placement)
            lease = Lease.take(uuids, self._holder(), self._request.oversubscribe, self._lease)
            self._board.close()
        if notice := owner_notice():
            placement = replace(placement, notices=(*placement.notices, notice))
        leased = "shared" if self._request.oversubscribe else "exclusive"
        return Allocation(placement, lease, leased)

    def _holder(self) -> Leaseholder:
        now, limit = time.time(), self._request.time_limit
        ends_by = None if limit is None else now + limit
        return msgspec.structs.replace(self._who, since=now, ends_by=ends_by)

    async def _get(self) -> Allocation:
        for _ in range(5):
            try:
                return await self._place(in_use(self._seen), True)
            except GpuTaken:  # by another process, which is seen next time, or just looks
                await asyncio.sleep(0.05)
        raise GpusTaken(
            "Lost a race for these GPUs: other pools lease and release them.", "Try again."
        )


def _give_back(taking: asyncio.Future[Allocation]) -> None:
    if not taking.cancelled() and not taking.exception():
        taking.result().close()
