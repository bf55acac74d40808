"""Stopping what ranks run, in three steps: interrupt, break the collectives, go on without.

Python hears an interrupt at once, but not while it waits in a collective for a rank that does not
come. So ranks that were in one are freed after a moment by breaking the process group, and so is,
after a while, what else is left. What is left then shows its error, and is waited for; or it is
stuck in C code, and is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection
from pathlib import Path

from ..common.protocol.agents.agent_messages import NoteLate
from ..common.protocol.ranks.rank_messages import CancelReply, CancelRequest
from .agent_link import AgentLink
from .cell_execution import Execution
from .group_recovery import GroupRecovery
from .ranks.rank_connection import RankConnection, read_reply, replies_of
from .ranks.watch_busy import Watcher

COLLECTIVE_PATIENCE = 0.3
"""Seconds for which ranks are waited for that were in a collective when they were interrupted."""
PATIENCE = 2.0
"""The same for all ranks: Python code may clean up, and save what it has."""
BREAK_PATIENCE = 2.0
"""The same for ranks whose collective was broken; on a busy machine they need most of it."""
ERROR_PATIENCE = 15.0
"""The same for ranks that show their error: on a busy machine, long tracebacks take seconds."""
_ANSWER = 0.5
"""Seconds within which a rank says where it is interrupted; one that does not holds the GIL."""
_LAST_ANSWER = 3.0
"""The same before it is said to be stuck, of one that has answered before."""
_ON_ITS_WAY = 0.2
"""Seconds for which an answer may be on its way."""
_MEANT = 5.0
"""Seconds for which whatever runs is meant: a rank that was stopped runs something else later."""
_ASK_EVERY = 0.05
"""Seconds between two looks at somebody else's cell, of whose end nobody tells us."""


class Interrupter:
    """Stops what ranks of one pool run.

    Parameters
    ----------
    connection : RankConnection
        To their control channels.
    link : AgentLink
        To their agent, which signals those that do not answer.
    group : GroupRecovery
        Breaks the process group.
    """

    def __init__(self, connection: RankConnection, link: AgentLink, group: GroupRecovery) -> None:
        self._connection = connection
        self._link = link
        self._group = group

    async def stop(self, execution: Execution) -> None:
        """Stop an execution, whatever it takes: it is done on return.

        A cell of somebody else that runs there meanwhile is left alone.
        """
        if execution.is_queued:  # a rank that is slow to say so must not be interrupted
            self._leave(execution)
            return
        silent = await self.interrupt(execution)  # who only now hear of it, from their agent
        deadline = time.monotonic() + PATIENCE
        await execution.ended(set(execution.outstanding) - execution.begun, _ON_ITS_WAY)
        waiting = {rank for rank, place in execution.places.items() if place.whereabouts.is_waiting}
        if not await execution.ended(waiting, min(COLLECTIVE_PATIENCE, PATIENCE)):
            self._break(execution)
        if not await execution.ended(execution.begun, deadline - time.monotonic()):
            # Again, for those that caught it; before any is freed, or it would spoil a traceback.
            silent &= await self.interrupt(execution, silent)
            self._break(execution)
            if not await execution.ended(execution.begun, BREAK_PATIENCE):
                left = execution.begun.intersection(execution.outstanding) - silent
                past = await self._past_their_code(left, execution.id)
                await execution.ended(past, ERROR_PATIENCE)
        self._leave(execution)

    async def _past_their_code(self, ranks: set[int], cell: str) -> set[int]:
        """Return those of some ranks that show a cell's error, or whose reply is on its way."""
        status = await self._connection.status(_LAST_ANSWER, ranks)
        return {
            rank
            for rank, said in status.items()
            if cell in ("", said.msg_id) and (said.state == "idle" or said.whereabouts.has_failed)
        }

    async def give_up(self, execution: Execution) -> None:
        """Ask where ranks are that somebody else could not stop, and wait for them no longer."""
        execution.stopping = execution.broke = True  # by whoever that was
        if not execution.is_queued:
            await self.interrupt(execution)
            await execution.ended(set(execution.outstanding), _ON_ITS_WAY)
        self._leave(execution)

    def _leave(self, execution: Execution) -> None:
        for rank in execution.outstanding:
            execution.finish(rank, {"status": "late" if rank in execution.begun else "aborted"})

    def _break(self, execution: Execution) -> None:
        execution.broke = True
        self._group.break_up(group=execution.group)

    async def stop_all(self) -> list[int]:
        """Stop whatever all ranks run, whoever waits for it; return those that did not stop.

        Who waits for these is told.

        Raises
        ------
        OSError
            If the pool has ended.
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
            await watcher.ready(living, _ON_ITS_WAY)
            await self.stop(execution)
        finally:
            following.cancel()
            await watcher.close()
        late = [rank for rank, reply in execution.replies.items() if reply.status == "late"]
        if late:
            self._link.send(NoteLate(late, generation))
        return late

    async def _follow(self, execution: Execution) -> None:
        """See for ourselves which ranks are idle, or in another cell than the one to be stopped."""
        while execution.outstanding:
            for rank in set(execution.outstanding) & self._connection.dead.keys():
                execution.lose(rank, self._connection.dead[rank])
            status = await self._connection.status(_ON_ITS_WAY, execution.outstanding)
            for rank, said in status.items():
                interrupted = execution.places.get(rank)
                is_next = interrupted and said.since != interrupted.since
                if said.state == "idle" or is_next:
                    execution.finish(rank, {"status": "ok"})
            await asyncio.sleep(_ASK_EVERY)

    async def interrupt(self, execution: Execution, silent: Collection[int] = ()) -> set[int]:
        """Interrupt an execution where it runs, and drop it where it waits for the lock.

        Without an id, it stands for whatever the ranks run.

        Parameters
        ----------
        execution : Execution
            What is to be interrupted.
        silent : collection of int
            Ranks that did not answer an earlier time, and are hardly waited for.

        Returns
        -------
        set of int
            The ranks that did not answer, which only their agent can interrupt.
        """
        asked = set(execution.outstanding)
        cancel = CancelRequest(execution.id, 0.0 if execution.id else time.time() + _MEANT)
        answers = await self._cancel(cancel, asked, set(silent))
        groups = {said.group for said in answers.values()}
        if not execution.group and len(groups) == 1:
            (execution.group,) = groups
        for rank, said in answers.items():
            if said.running:
                execution.begun.add(rank)
                execution.places.setdefault(rank, said)
        # A rank whose threads are all stuck in C code is not asked: its subprocesses may hear it.
        unheard = asked - set(answers) - set(self._connection.dead)
        execution.begun |= unheard
        execution.stopped = set(self._link.stopped(unheard))
        self._link.interrupt(unheard)
        return unheard

    async def _cancel(
        self, cancel: CancelRequest, ranks: set[int], silent: set[int]
    ) -> dict[int, CancelReply]:
        """Ask ranks to cancel a cell, and wait for the answers of those that may give one."""
        living = ranks - self._connection.dead.keys()
        answers = self._connection.begin(cancel.kind, cancel.content, living)
        try:
            if answers:
                await asyncio.wait(answers.values(), timeout=_ON_ITS_WAY)
            late = living - replies_of(answers).keys() - silent
            late -= set(self._link.stopped(late))
            if late:
                left = _ANSWER - _ON_ITS_WAY
                await asyncio.wait([answers[rank] for rank in late], timeout=left)
            said = replies_of(answers)
        finally:
            for answer in answers.values():
                answer.cancel()
        replies = {rank: read_reply(rank, message, CancelReply) for rank, message in said.items()}
        return {rank: reply for rank, reply in replies.items() if reply is not None}


@contextlib.asynccontextmanager
async def interrupter_of(folder: Path, link: AgentLink) -> AsyncIterator[Interrupter]:
    """Reach the ranks of a pool by their control channels alone.

    Raises
    ------
    OSError
        If the pool has ended.
    """
    async with RankConnection(folder) as connection:
        for rank in link.snapshot.ranks if link.snapshot else []:
            if rank.state == "dead":
                connection.note_death(rank.rank, rank.exit or "")
        yield Interrupter(connection, link, GroupRecovery(connection, link))
