"""Stops what ranks run, in three steps: interrupt, break the collectives, go on without.

Python reacts to an interrupt at once, but not while it waits in a collective for a rank that does
not come. So ranks in collectives are freed after a moment by breaking the process group, and all
others after a while. A rank that still runs then is asked where it is. One that shows its error is
waited for; one that is stuck in C code is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path

from ..common.patience import patience
from ..common.protocol.agents.agent_messages import NoteLate
from ..common.protocol.ranks.rank_messages import CancelReply, CancelRequest
from .agent_link import AgentLink
from .cell_execution import Execution
from .group_recovery import GroupRecovery
from .ranks.rank_connection import RankConnection, read_replies, replies_of
from .ranks.watch_busy import Watcher


class Interrupter:
    """Stops what ranks of one pool run; the agent signals only ranks that do not answer."""

    def __init__(self, connection: RankConnection, link: AgentLink, group: GroupRecovery) -> None:
        self._connection = connection
        self._link = link
        self._group = group

    async def stop(self, execution: Execution) -> None:
        """Stop an execution, and no other client's cell; it is done on return."""
        if execution.is_queued:  # a rank that is slow to say so must not be interrupted
            self._leave(execution)
            return
        silent = await self.interrupt(execution)  # the agent has interrupted them only now
        deadline = time.monotonic() + patience.cleanup
        await execution.ended(set(execution.outstanding) - execution.begun, patience.instant)
        waiting = {rank for rank, place in execution.places.items() if place.whereabouts.is_waiting}
        if not await execution.ended(waiting, patience.instant):
            self._break(execution)
        if not await execution.ended(execution.begun, deadline - time.monotonic()):
            # Again, for those that caught it; before any is freed, or it would spoil a traceback.
            silent &= await self.interrupt(execution, silent)
            self._break(execution)
            if not await execution.ended(execution.begun, patience.cleanup):
                left = execution.begun.intersection(execution.outstanding) - silent
                # On a busy machine, long tracebacks take seconds.
                past = await self._past_their_code(left, execution.id)
                await execution.ended(past, patience.end)
        self._leave(execution)

    async def _past_their_code(self, ranks: set[int], cell: str) -> set[int]:
        """Return the ranks that show a cell's error, or whose reply is on its way."""
        status = await self._connection.status(patience.busy_answer, ranks)
        return {
            rank
            for rank, said in status.items()
            if cell in ("", said.msg_id) and (said.state == "idle" or said.whereabouts.has_failed)
        }

    async def give_up(self, execution: Execution) -> None:
        """Ask where ranks are that another client could not stop, and wait for them no longer."""
        execution.stopping = execution.broke = True
        if not execution.is_queued:
            await self.interrupt(execution)
            await execution.ended(set(execution.outstanding), patience.instant)
        self._leave(execution)

    def _leave(self, execution: Execution) -> None:
        for rank in execution.outstanding:
            execution.finish(rank, {"status": "late" if rank in execution.begun else "aborted"})

    def _break(self, execution: Execution) -> None:
        execution.broke = True
        self._group.break_up(group=execution.group)

    async def stop_all(self) -> list[int]:
        """Stop whatever all ranks run, for any client; return the ranks that did not stop.

        The client whose cell they run is told. Raises `OSError` if the pool has ended.
        """
        execution = Execution(range(self._connection.world_size), lambda *_: None)
        generation = self._link.generation

        def note(rank: int, state: str, *_: object) -> None:
            if state == "idle":
                execution.finish(rank, {"status": "ok"})

        # A rank that is asked may not answer: it may be in the C code of the next cell by then.
        watcher = Watcher(self._connection.folder, note)
        following = asyncio.create_task(self._follow(execution))
        try:
            living = set(execution.outstanding) - set(self._connection.dead)
            await watcher.ready(living, patience.instant)
            await self.stop(execution)
        finally:
            following.cancel()
            await watcher.close()
        late = [rank for rank, reply in execution.replies.items() if reply.status == "late"]
        if late:
            self._link.send(NoteLate(late, generation))
        return late

    async def _follow(self, execution: Execution) -> None:
        """Ask which ranks are idle, or in another cell than the one to be stopped."""
        while execution.outstanding:
            for rank in set(execution.outstanding) & self._connection.dead.keys():
                execution.lose(rank, self._connection.dead[rank])
            status = await self._connection.status(patience.instant, execution.outstanding)
            for rank, said in status.items():
                interrupted = execution.places.get(rank)
                is_next = interrupted and said.since != interrupted.since
                if said.state == "idle" or is_next:
                    execution.finish(rank, {"status": "ok"})
            await asyncio.sleep(0.05)

    async def interrupt(self, execution: Execution, silent: Collection[int] = ()) -> set[int]:
        """Interrupt an execution where it runs, and drop it where it waits for the lock.

        An execution without an id stands for whatever the ranks run. Ranks in `silent` did not
        answer an earlier time. Returns the ranks that do not answer: the agent interrupts them.
        """
        asked = set(execution.outstanding)
        # A rank that was stopped may run something else later, which is not meant.
        sent = 0.0 if execution.id else time.time()
        answers = await self._cancel(CancelRequest(execution.id, sent), asked, set(silent))
        groups = {said.group for said in answers.values()}
        if not execution.group and len(groups) == 1:
            (execution.group,) = groups
        for rank, said in answers.items():
            if said.running:
                execution.begun.add(rank)
                execution.places.setdefault(rank, said)
        # Although a rank may be stuck in C code, its subprocesses may react to a signal.
        unheard = asked - set(answers) - set(self._connection.dead)
        execution.begun |= unheard
        execution.stopped = set(self._link.stopped(unheard))
        self._link.interrupt(unheard)
        return unheard

    async def _cancel(
        self, cancel: CancelRequest, ranks: set[int], silent: set[int]
    ) -> dict[int, CancelReply]:
        """Ask ranks to cancel a cell; stopped and `silent` ones are hardly waited for."""
        living = ranks - self._connection.dead.keys()
        answers = self._connection.begin(cancel.kind, cancel.content, living)
        try:
            if answers:
                await asyncio.wait(answers.values(), timeout=patience.instant)
            late = living - replies_of(answers).keys() - silent
            late -= set(self._link.stopped(late))
            if late:
                left = max(0.0, patience.answer - patience.instant)
                await asyncio.wait([answers[rank] for rank in late], timeout=left)
            return read_replies(replies_of(answers), CancelReply)
        finally:
            for answer in answers.values():
                answer.cancel()


@contextlib.asynccontextmanager
async def interrupter_of(folder: Path, link: AgentLink) -> AsyncIterator[Interrupter]:
    """Reach the ranks of a pool on their control channels; `OSError` if the pool has ended."""
    async with RankConnection(folder) as connection:
        for rank in link.snapshot.ranks if link.snapshot else []:
            if rank.state == "dead":
                connection.note_death(rank.rank, rank.exit or "")
        yield Interrupter(connection, link, GroupRecovery(connection, link))
