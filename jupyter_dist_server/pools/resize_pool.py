"""More or fewer ranks for a pool that runs: GPUs for the new ones, then the order to its agent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from pathlib import Path

from ..common.background_tasks import Tasks
from ..common.errors import DistError
from ..common.files.hand_over import HandOver
from ..common.patience import patience
from ..common.pool_folder import read_config
from ..common.protocol.agents.agent_messages import PlacedRank, Resize
from ..common.protocol.failure_reason import Reason
from ..common.protocol.offers import InLine
from ..common.protocol.pool_file import PoolFile
from ..common.protocol.pool_record import PoolRecord, PoolState, Resizing
from ..common.rank_specs import MAX_RANKS
from ..placement.added_ranks import added_ranks, as_before, gpus_of, request_for_more
from ..placement.allocate_gpus import Allocator
from ..placement.new_pool_record import Allocation
from ..placement.ranks_to_gpus import GpusTaken
from .live_record import LiveRecord, check_running
from .pool_agent import PoolAgent


@dataclass(eq=False)
class Resizer:
    """Resizes one pool; one order replaces the one before it, if that still waits."""

    _pool: LiveRecord
    _agent: PoolAgent
    _tasks: Tasks
    _waiting: asyncio.Task[None] | None = None

    async def resize(self, num_ranks: int, wait: float | None = None) -> None:
        """Begin to have `num_ranks`; the record's `resizing` tells how far that is.

        The new ranks get GPUs by the rules of a start, the last ones leave. Without `wait`, in
        seconds, GPUs must be free now. The pool's present size cancels what still waits. Raises
        `GpusTaken`, and `DistError` if the pool does not run or cannot be resized.
        """
        record = self._pool.record
        _check(record, num_ranks)
        await self._cancel()
        if num_ranks == record.world_size:
            return
        pool = await asyncio.to_thread(read_config, Path(record.folder))
        request = request_for_more(pool, record, num_ranks - record.world_size, wait)
        allocator, allocation = None, None
        if request:
            name = f"{record.id}-{record.generation}"
            allocator = Allocator(request, record, lease=name, besides=gpus_of(pool))
            try:
                allocation = await allocator.now()
            except GpusTaken as error:
                if wait is None:
                    raise _taken(error, record.world_size) from None
        self._pool.change(resizing=Resizing(num_ranks))
        self._waiting = self._tasks.add(self._resize(pool, num_ranks, allocator, allocation))

    async def _cancel(self) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.cancel()
            await asyncio.wait([self._waiting])
        self._pool.change(resizing=None)

    def _tell(self, reason: str, line: InLine | None) -> None:
        if now := self._pool.record.resizing:
            self._pool.change(resizing=Resizing(now.num_ranks, reason, line))

    async def _resize(
        self,
        pool: PoolFile,
        num_ranks: int,
        allocator: Allocator | None,
        allocation: Allocation | None,
    ) -> None:
        failure: Reason | None = None
        try:
            if allocator and not allocation:
                allocation = await allocator.in_line(self._tell)
            more = num_ranks - len(pool.ranks)
            new = added_ranks(pool, allocation.placement) if allocation else as_before(pool, more)
            ranks = [*pool.ranks[:num_ranks], *new]
            self._tell("The ranks run a cell.", None)
            if await self._agent.link.acquire_lock(self._agent.link.closed):
                try:
                    _check(self._pool.record, num_ranks)  # it may have been parked meanwhile
                    await self._order(ranks, allocation.descriptors if allocation else [])
                finally:
                    self._agent.link.lock.release()
        except DistError as error:
            failure = Reason(error.code, error.message, error.hint)
        except OSError as error:  # the pool's folder is gone, or cannot be written
            failure = Reason("not_resized", f"The pool was not resized: {error}.")
        finally:
            if allocation:
                allocation.close()
        self._pool.change(resizing=failure and Resizing(num_ranks, failure=failure))

    async def _order(self, ranks: list[PlacedRank], descriptors: list[int]) -> None:
        """Have the agent start and end ranks, and wait until all are ready."""
        self._tell("Ranks start or end.", None)
        record = self._pool.record
        order = Resize(ranks, bool(descriptors))
        if descriptors:
            with contextlib.closing(HandOver(Path(record.folder), descriptors)) as files:
                self._agent.link.send(order)
                with contextlib.suppress(asyncio.TimeoutError):  # as below
                    await files.give()
        else:
            self._agent.link.send(order)
        until = time.monotonic() + patience.node + patience.end
        while record.world_size != len(ranks) or record.state is PoolState.CONFIGURING:
            left = until - time.monotonic()
            if record.state.ended or (left <= 0 and record.world_size != len(ranks)):
                raise DistError(
                    "not_resized",
                    f"The pool still has {record.world_size} ranks: its agent did not resize it.",
                    f"Its log, {record.folder}/agent.log, may say why.",
                )
            await self._pool.changed_since(record.version, max(left, patience.instant))


def _taken(error: GpusTaken, size: int) -> DistError:
    """Return the refusal of more ranks, with what can be done instead."""
    free = next((len(offer.gpu_ids) for offer in error.offers if offer.kind == "free"), 0)
    smaller = f", or add {free}: %dist_resize {size + free}" if free else ""
    return DistError(error.code, error.message, f"Wait with --wait{smaller}.")


def _check(record: PoolRecord, num_ranks: int) -> None:
    check_running(record, "be resized")
    if record.parked or (record.parking and not record.parking.failure):
        raise DistError(
            "not_resized",
            "The pool cannot be resized while it is being parked or resumed.",
            "Resume it with %dist_resume first.",
        )
    if not 1 <= num_ranks <= MAX_RANKS:
        message = f"The number of ranks must be from 1 to {MAX_RANKS}, not {num_ranks}."
        raise DistError("bad_request", message, field="num_ranks")
    if record.other_nodes:
        raise DistError(
            "bad_request",
            "A pool on several nodes cannot be resized.",
            "Stop it with %dist_shutdown, and start another with %dist_init.",
            field="num_ranks",
        )
    if dead := [
        rank.rank for rank in record.ranks if rank.state == "dead" and rank.rank < num_ranks
    ]:
        raise DistError(
            "rank_dead",
            f"The pool cannot be resized while rank {dead[0]} is dead.",
            f"Replace it with %dist_restart --ranks {dead[0]} first.",
        )
