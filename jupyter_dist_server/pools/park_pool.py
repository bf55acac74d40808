"""Parks a pool: its ranks keep all they have, in the host's memory, and others get its GPUs.

The driver moves what is on the GPUs, and brings it back:
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CHECKPOINT.html
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..client.ranks.rank_connection import RankConnection
from ..common.background_tasks import Tasks, any_of
from ..common.errors import DistError
from ..common.files.hand_over import HandOver
from ..common.patience import patience
from ..common.pool_folder import read_config
from ..common.processes.control_groups import available_memory
from ..common.protocol.agents.agent_messages import (
    Command,
    GiveBack,
    Kill,
    NoteParked,
    Parked,
    TakeBack,
)
from ..common.protocol.failure_reason import Reason
from ..common.protocol.offers import InLine
from ..common.protocol.pool_record import Parking
from ..common.protocol.ranks.park_messages import (
    ParkReply,
    ParkRequest,
    Step,
    UnloadReply,
    UnloadRequest,
)
from ..common.rank_specs import name_ranks
from ..common.units import format_bytes
from ..placement.added_ranks import request_again
from ..placement.allocate_gpus import Allocator
from ..placement.new_pool_record import Allocation
from ..placement.ranks_to_gpus import GpusTaken
from .can_park import check_memory, check_nobody_else, check_parkable
from .live_record import LiveRecord
from .pool_agent import PoolAgent

_SLOWEST = 1e9
"""Bytes per second that are copied from or to GPUs at least."""


@dataclass(eq=False)
class Parker:
    """Parks and resumes one pool; the record's `parking` tells how far that is."""

    _pool: LiveRecord
    _agent: PoolAgent
    _tasks: Tasks
    _task: asyncio.Task[None] | None = None
    _waits: bool = False
    """Whether the pool, as it is being resumed, has no GPUs yet."""

    async def park(self) -> None:
        """Begin to park the pool, after the cell that runs; stop it from waiting to be resumed.

        Raises `DistError` if it cannot be parked.
        """
        if self._waits and self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
        record = self._pool.record
        if not record.parked and not (record.parking and not record.parking.failure):
            check_parkable(record)
            self._begin(False, self._park())

    async def resume(self) -> None:
        """Begin to bring a parked pool back to its GPUs; wait in line if others have them.

        One that is not parked forgets why it could not be.
        """
        if self._task and not self._task.done() and not self._is_resuming:
            await asyncio.wait([self._task])
        record = self._pool.record
        if record.parked and not self._is_resuming:
            self._waits = not record.parked.leased
            self._begin(True, self._resume())
        elif record.parking and record.parking.failure:
            self._pool.change(parking=None)

    async def ready(self) -> None:
        """Wait until a parked pool runs again, as `resume` does; raise `DistError` if it cannot."""
        while (record := self._pool.record).parked and not record.state.ended:
            await self.resume()
            if self._task:
                await asyncio.wait([self._task])
            if record.parking and record.parking.failure:
                raise record.parking.failure.error()

    @property
    def _is_resuming(self) -> bool:
        now = self._pool.record.parking
        return bool(now and now.resume and not now.failure)

    def _begin(self, resume: bool, work: Awaitable[None]) -> None:
        self._pool.change(parking=Parking(resume))
        self._task = self._tasks.add(self._finish(resume, work))

    async def _finish(self, resume: bool, work: Awaitable[None]) -> None:
        failure: Reason | None = None
        working = asyncio.ensure_future(work)
        try:
            await any_of(_ended(working), self._agent.link.closed)
            if working.done():
                working.result()
        except DistError as error:
            failure = Reason(error.code, error.message, error.hint)
        except OSError as error:  # the pool's folder is gone, or cannot be written
            failure = Reason("cannot_park", f"The pool stays as it is: {error}.")
        finally:
            working.cancel()  # the pool has ended, or the wait
            await asyncio.wait([working])
            self._pool.change(parking=failure and Parking(resume, failure=failure))

    def _tell(self, reason: str, line: InLine | None = None) -> None:
        if now := self._pool.record.parking:
            self._pool.change(parking=Parking(now.resume, reason, line))

    # -- to the host's memory ---------------------------------------------------------------

    async def _park(self) -> None:
        self._tell("The ranks run a cell.")
        link = self._agent.link
        if not await link.acquire_lock(link.closed):
            return  # the pool has ended
        try:
            if self._pool.record.parked:  # another notebook was quicker
                return
            self._tell("The ranks free what they can.")
            await check_nobody_else(self._pool.record)
            async with self._connection() as ranks:
                nbytes = await self._unload(ranks)
                await asyncio.to_thread(check_memory, nbytes, available_memory())
                self._tell(f"{format_bytes(nbytes)} are moved to the host's memory.")
                parked = Parked(time.time(), nbytes)
                await self._note(parked)
                await self._leave(ranks)
                for step in ("lock", "checkpoint"):
                    for rank, said in (await self._failed(ranks, step, parked)).items():
                        raise _cannot(rank, said.failure)
            await self._obeyed(GiveBack(), lambda: not self._is_leased)
        except DistError as error:
            await self._undo(error)
            raise
        finally:
            link.lock.release()

    async def _unload(self, ranks: RankConnection) -> int:
        """Have ranks free what they can; return how much is left on their GPUs."""
        return sum(reply.nbytes for reply in await self._get_ready(ranks, UnloadRequest()))

    async def _leave(self, ranks: RankConnection) -> None:
        """Have ranks leave a process group on NCCL, and name the models that have it."""
        replies = await self._get_ready(ranks, UnloadRequest(leave=True))
        if wrapped := sorted(set().union(*(reply.wrapped for reply in replies))):
            self._pool.set_notice(_wrapped_models(wrapped), True)

    async def _get_ready(self, ranks: RankConnection, request: UnloadRequest) -> list[UnloadReply]:
        limit = patience.driver
        replies = await ranks.request(request, UnloadReply, timeout=limit)
        silent = UnloadReply(failure=f"It did not answer within {limit:g} s.")
        said = [replies.get(rank, silent) for rank in range(ranks.world_size)]
        for rank, reply in enumerate(said):
            if reply.failure:
                raise _cannot(rank, reply.failure)
        return said

    async def _undo(self, why: DistError) -> None:
        """Let ranks use their GPUs again, after a step has failed; end those that cannot."""
        if parked := self._pool.record.parked:
            async with self._connection() as ranks:
                lost = await self._failed(ranks, "restore", parked)
                lost |= await self._failed(ranks, "unlock", parked, besides=lost)
                self._end(lost)
            await self._note(None)
            why.message += _what_is_lost(lost) or " The ranks go on, with all that they had."

    # -- back to the GPUs -------------------------------------------------------------------

    async def _resume(self) -> None:
        parked = self._pool.record.parked
        assert parked
        if not parked.leased:  # or whoever had it parked, or resumed it, has ended meanwhile
            allocation = await self._wait_for_gpus()
            self._waits = False
            with contextlib.closing(allocation):
                await self._hand_over(allocation)
        self._tell(f"{format_bytes(parked.nbytes)} are moved to the GPUs.")
        async with self._connection() as ranks:
            failed = await self._failed(ranks, "restore", parked)
            lost = {rank: reply for rank, reply in failed.items() if reply.is_lost}
            if failed.keys() - lost.keys():
                await self._stay_parked(ranks, parked, failed, lost)
            lost |= await self._failed(ranks, "unlock", parked, besides=lost)
            self._end(lost)
        await self._note(None)
        if lost:
            raise _not_resumed(lost, _what_is_lost(lost).strip())

    async def _stay_parked(
        self,
        ranks: RankConnection,
        parked: Parked,
        failed: dict[int, ParkReply],
        lost: dict[int, ParkReply],
    ) -> None:
        """Have ranks that came back leave again, as others did not, but still may."""
        lost |= await self._failed(ranks, "checkpoint", parked, besides=lost)
        self._end(lost)
        if len(lost) < ranks.world_size:
            await self._obeyed(GiveBack(), lambda: not self._is_leased)
            raise _not_resumed(failed, f"The pool stays parked.{_what_is_lost(lost)}")

    async def _wait_for_gpus(self) -> Allocation:
        """Wait in line for the GPUs that the ranks had."""
        record = self._pool.record
        pool = await asyncio.to_thread(read_config, Path(record.folder))
        allocator = Allocator(request_again(pool, record), record)
        try:
            return await allocator.now()
        except GpusTaken:
            return await allocator.in_line(self._tell)

    async def _hand_over(self, allocation: Allocation) -> None:
        folder = Path(self._pool.record.folder)
        with contextlib.closing(HandOver(folder, allocation.descriptors)) as files:
            giving = asyncio.ensure_future(files.give())
            try:
                await self._obeyed(TakeBack(), lambda: self._is_leased)
            finally:
                giving.cancel()
                await asyncio.gather(giving, return_exceptions=True)

    # -- what ranks and the agent are told --------------------------------------------------

    def _connection(self) -> RankConnection:
        return RankConnection(Path(self._pool.record.folder), ("control", "shell"))

    async def _failed(
        self, ranks: RankConnection, step: Step, parked: Parked, besides: Collection[int] = ()
    ) -> dict[int, ParkReply]:
        """Have living ranks take a step; return what those say that failed."""
        asked = sorted(set(range(ranks.world_size)) - self._dead - set(besides))
        limit = patience.driver + parked.nbytes / _SLOWEST
        request = ranks.request(ParkRequest(step), ParkReply, asked, timeout=limit)
        asking = asyncio.ensure_future(request)
        while not asking.done():
            for rank in self._dead:
                ranks.give_up(rank)
            news = self._pool.changed_since(self._pool.record.version, limit)
            await any_of(_ended(asking), news)
        # One that is silent may take the step at any time, when its GPU is another pool's.
        silent = ParkReply(f"It did not answer within {limit:.0f} s.", is_lost=True)
        replies = dict.fromkeys(asked, silent) | asking.result()
        replies |= dict.fromkeys(self._dead.intersection(asked), ParkReply("It has died.", True))
        return {rank: reply for rank, reply in replies.items() if reply.failure}

    @property
    def _dead(self) -> set[int]:
        return {rank.rank for rank in self._pool.record.ranks if rank.state == "dead"}

    def _end(self, ranks: Collection[int]) -> None:
        living = [self._pool.record.ranks[rank] for rank in ranks if rank not in self._dead]
        if pids := [rank.pid for rank in living if rank.pid]:
            self._agent.link.send(Kill(pids, [rank.rank for rank in living]))

    async def _note(self, parked: Parked | None) -> None:
        await self._obeyed(NoteParked(parked), lambda: self._pool.record.parked == parked)

    @property
    def _is_leased(self) -> bool:
        parked = self._pool.record.parked
        return parked is None or parked.leased

    async def _obeyed(self, command: Command, has: Callable[[], bool]) -> None:
        """Give the agent a command, and wait until it has obeyed."""
        self._agent.link.send(command)
        until = time.monotonic() + patience.node
        while not has():
            if (left := until - time.monotonic()) <= 0 or self._pool.record.state.ended:
                raise await self._agent.link.silent_error()
            await self._pool.changed_since(self._pool.record.version, left)


def _wrapped_models(names: Sequence[str]) -> str:
    return (
        f"Parking has ended the process group on NCCL: wrap {', '.join(names)} again, for example "
        f"{names[0]} = DistributedDataParallel({names[0]}.module)."
    )


async def _ended(work: asyncio.Future[Any]) -> None:
    await asyncio.wait([work])


def _cannot(rank: int, why: str) -> DistError:
    return DistError("cannot_park", f"Rank {rank} cannot be parked. {why}")


def _not_resumed(failed: Mapping[int, ParkReply], outcome: str) -> DistError:
    rank, reply = next(iter(failed.items()))
    message = f"Rank {rank} did not come back to its GPU. {reply.failure} {outcome}"
    return DistError("not_resumed", message, "%dist_status shows the ranks.")


def _what_is_lost(ranks: Collection[int]) -> str:
    """Return a sentence about ranks that had to be ended, and one on what to do."""
    if not ranks:
        return ""
    them = ",".join(map(str, sorted(ranks)))
    who = name_ranks(sorted(ranks)).capitalize()
    return (
        f" {who} had to be ended, and the variables there are lost. "
        f"%dist_restart --ranks {them} starts new ones."
    )
