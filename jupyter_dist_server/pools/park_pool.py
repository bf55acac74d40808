"""Parks a pool: its ranks keep all they have, in the host's memory, and others get its GPUs.

The driver moves what is on the GPUs, and brings it back:
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CHECKPOINT.html
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Coroutine, Mapping
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
from .park_steps import ParkSteps, cannot_park
from .pool_agent import PoolAgent

_RESUME = "Resume it with %dist_resume."


@dataclass(eq=False)
class Parker:
    """Parks and resumes one pool; the record's `parking` tells how far that is.

    Each notebook that uses the pool may have one: they take turns by the execution lock.
    """

    _pool: LiveRecord
    _agent: PoolAgent
    _tasks: Tasks
    _task: asyncio.Task[None] | None = None
    _waits: bool = False
    """Whether nothing has been done yet: it waits for a cell, or for its GPUs."""
    _only_if_idle: bool = False
    """Whether nobody has asked for the parking that is under way."""

    def __post_init__(self) -> None:
        self._steps = ParkSteps(self._pool)

    async def park(self, only_if_idle: bool = False) -> None:
        """Begin to park the pool, after the cell that runs; stop it from waiting to be resumed.

        With `only_if_idle`, it is not parked after a cell. Raises `DistError` if it cannot be.
        """
        if self._is_under_way:
            self._only_if_idle &= only_if_idle
            if self._waits and self._is_resuming and not only_if_idle:
                await self._call_off()
            return
        parked = self._pool.record.parked
        if not parked:
            check_parkable(self._pool.record)
        if not parked or parked.leased:  # whoever was parking it has ended meanwhile
            self._only_if_idle = only_if_idle
            self._begin(False, self._park)

    async def resume(self) -> None:
        """Begin to bring a parked pool back to its GPUs; wait in line if others have them.

        One that still waits to be parked is not parked, and one that is not parked forgets why it
        could not be. While ranks are moved, nothing happens: who follows `parking` asks again.
        """
        if self._is_under_way:
            if self._is_resuming or not self._waits:
                return
            await self._call_off()
        record = self._pool.record
        if record.parked:
            self._begin(True, self._resume)
        elif record.parking:
            self._pool.change(parking=None)

    async def ready(self) -> None:
        """Wait until a parked pool runs again, as `resume` does; raise `DistError` if it does not.

        Nothing is waited for once the pool ends.
        """
        link = self._agent.link
        while (record := self._pool.record).parked and not link.closed.is_set():
            await self.resume()
            if self._task:
                await asyncio.wait([self._task])
                if self._task.cancelled():
                    raise DistError("pool_parked", "The pool stays parked.", _RESUME)
            if record.parking and record.parking.resume and record.parking.failure:
                raise record.parking.failure.error()

    @property
    def _is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    async def _call_off(self) -> None:
        if self._task:
            self._task.cancel()
            await asyncio.wait([self._task])
            if self._task.cancelled():  # perhaps before it began
                self._pool.change(parking=None)

    @property
    def _is_resuming(self) -> bool:
        now = self._pool.record.parking
        return bool(now and now.resume and not now.failure)

    def _begin(self, resume: bool, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._pool.change(parking=Parking(resume))
        self._waits = True
        self._task = self._tasks.add(self._finish(resume, work))

    async def _finish(self, resume: bool, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        failure: Reason | None = None
        working = asyncio.create_task(work())
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
        self._waits = False
        try:
            parked = self._pool.record.parked
            if parked and not parked.leased:  # another notebook was quicker
                return
            if self._only_if_idle and self._pool.record.idle_since is None:
                return
            async with self._steps.connection() as ranks:
                parked = parked or await self._get_ready(ranks)
                self._tell(f"{format_bytes(parked.nbytes)} are moved to the host's memory.")
                for step in ("lock", "checkpoint"):
                    for rank, said in (await self._steps.failed(ranks, step, parked)).items():
                        raise cannot_park(rank, said.failure)
            await self._obeyed(GiveBack(), lambda: not self._is_leased)
        except DistError as error:
            await self._undo(error)
            raise
        finally:
            link.lock.release()

    async def _get_ready(self, ranks: RankConnection) -> Parked:
        """See whether the pool can be parked now, and have ranks free and leave what they can."""
        record = self._pool.record
        check_parkable(record)  # ranks may have died meanwhile
        self._tell("The ranks free what they can.")
        await check_nobody_else(record)
        nbytes: dict[str, int] = {}
        for rank, said in (await self._steps.unload(ranks, UnloadRequest())).items():
            gpu = record.ranks[rank].gpu
            uuid = gpu.uuid if gpu else ""
            nbytes[uuid] = max(nbytes.get(uuid, 0), said.nbytes)
        check_memory(sum(nbytes.values()), await asyncio.to_thread(available_memory))
        parked = Parked(time.time(), sum(nbytes.values()))
        await self._note(parked)
        await self._steps.unload(ranks, UnloadRequest(leave=True))
        return parked

    async def _undo(self, why: DistError) -> None:
        """Let ranks use their GPUs again, after a step has failed; end those that cannot."""
        if parked := self._pool.record.parked:
            async with self._steps.connection() as ranks:
                lost = await self._steps.failed(ranks, "restore", parked)
                lost |= await self._steps.failed(ranks, "unlock", parked, besides=lost)
                self._end(lost)
            await self._note(None)
            why.message += _what_is_lost(lost) or " The ranks go on, and keep their variables."

    # -- back to the GPUs -------------------------------------------------------------------

    async def _resume(self) -> None:
        self._tell("Another notebook parks or resumes it.")
        link = self._agent.link
        if not await link.acquire_lock(link.closed):
            return  # the pool has ended
        try:
            if parked := self._pool.record.parked:  # or another notebook was quicker
                await self._bring_back(parked)
        finally:
            link.lock.release()

    async def _bring_back(self, parked: Parked) -> None:
        if not parked.leased:  # or whoever had it parked, or resumed it, has ended meanwhile
            allocation = await self._wait_for_gpus()
            self._waits = False
            with contextlib.closing(allocation):
                await self._hand_over(allocation)
        self._waits = False
        self._tell(f"{format_bytes(parked.nbytes)} are moved to the GPUs.")
        async with self._steps.connection() as ranks:
            failed = await self._steps.failed(ranks, "restore", parked)
            lost = {rank: reply for rank, reply in failed.items() if reply.is_lost}
            if failed.keys() - lost.keys():
                await self._stay_parked(ranks, parked, failed, lost)
            lost |= await self._steps.failed(ranks, "unlock", parked, besides=lost)
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
        lost |= await self._steps.failed(ranks, "checkpoint", parked, besides=lost)
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

    def _end(self, ranks: Collection[int]) -> None:
        living = [self._pool.record.ranks[rank] for rank in ranks if rank not in self._steps.dead]
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
                raise await self._why_not_obeyed()
            await self._pool.changed_since(self._pool.record.version, left)

    async def _why_not_obeyed(self) -> DistError:
        if self._pool.record.state.ended or await self._agent.is_silent():
            return await self._agent.link.silent_error()
        return DistError(
            "not_resumed" if self._is_resuming else "cannot_park",
            "The pool's agent did not do what it was told.",
            f"Its log, {self._pool.record.folder}/agent.log, may say why.",
        )


async def _ended(work: asyncio.Future[Any]) -> None:
    await asyncio.wait([work])


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
