"""A client's part in the recovery of the process group: abort it and re-create it."""

from __future__ import annotations

import asyncio
import time
import uuid

from ..common.patience import patience
from ..common.protocol.ranks.cell_messages import GROUP
from ..common.protocol.ranks.rank_messages import BreakRequest, RegroupReply, RegroupRequest
from .agent_link import AgentLink
from .cell_execution import Execution, Reply
from .ranks.rank_connection import RankConnection


class GroupRecovery:
    """Keeps the process group whole; used only while the client has the execution lock."""

    def __init__(self, connection: RankConnection, link: AgentLink) -> None:
        self.repaired = False
        """Whether the process group was unusable after the last cell, and was re-created."""
        self.busy: dict[int, int | None] = {}
        """Ranks that kept it from being re-created, with the cell that each runs, if it answers."""
        self.running: set[int] = set()
        """Those of them that answer."""
        self.late: set[int] = set()
        """Ranks that were idle, and for which the others waited in vain."""
        self.wrapped: set[str] = set()
        """Variables of ranks whose modules have a group of the pool's earlier size."""
        self.suspect = True  # another client may have left it broken
        """Whether the group may be broken: it is checked before the next cell."""
        self._is_unanswered = False
        """Whether ranks still follow the last order to meet, or wait for a store in vain."""
        self._deaf: set[int] = set()
        """Ranks that are not waited for, as they did not answer the last time."""
        self._size = connection.world_size
        self._connection = connection
        self._link = link

    def break_up(self, generation: int | None = None, group: str = "") -> None:
        """End every collective, on all ranks: some of those that it waits for will not come.

        It is meant for ranks of a `generation`, by default the present one, in a `group`, or in
        any that was asked for until now: a slow rank may be in a newer one.
        """
        self.suspect, self._is_unanswered = True, False
        generation = self._link.generation if generation is None else generation
        self._connection.tell(BreakRequest(generation, group, time.monotonic()))

    async def check(self, replies: dict[int, Reply]) -> None:
        """Look at the group after a cell, and repair it if the cell did not end well."""
        self.repaired = False
        if not self.suspect:  # or they may have replied before it was broken
            groups = {reply.content.get(GROUP) for reply in replies.values()}
            is_whole = len(groups) == 1 and None not in groups and len(replies) == self._size
            self.suspect = not is_whole and any(r.status != "ok" for r in replies.values())
        late = {rank for rank, reply in replies.items() if reply.status == "late"}
        self._deaf |= late
        if not late:  # the user, who may have pressed Stop, waits for this
            await self.repair(2 * patience.answer)

    async def prepare(self, execution: Execution) -> None:
        """Repair the group before a cell, once all its ranks have ended what was stopped.

        As long as one still runs an earlier cell, it is begun on none: its collectives would fail
        on the others. A rank that is late for another reason, or silent, has a time limit.
        """
        begun = time.monotonic()
        while not await self.repair():
            awaited = (self.busy.keys() | self.late) & set(execution.outstanding)
            if not awaited:
                return
            waited = time.monotonic() - begun
            # Ranks that are idle, but did not meet, may only be slow.
            limit = 2 * patience.end if self.late else patience.busy_answer
            if waited > limit and not awaited & self.running:
                if self._is_unanswered:
                    self.break_up()
                return
            await asyncio.sleep(0.05 if waited < patience.busy_answer else 0.5)

    async def repair(self, within: float | None = None) -> bool:
        """Make the group again if it is broken, and all ranks are idle; tell if it is whole.

        Ranks must meet `within` some seconds, by default those of a busy machine.
        """
        self.busy, self.running, self.late = {}, set(), set()
        if not self.suspect:
            return True
        if self._connection.dead:
            return False
        status = await self._connection.status(timeout=patience.instant)
        self._deaf -= status.keys()
        slow = set(range(self._size)) - status.keys() - self._deaf
        slow -= set(self._link.stopped(slow))
        if slow and not self._link.closed.is_set():
            status |= await self._connection.status(timeout=patience.cleanup, ranks=slow)
            self._deaf |= slow - status.keys()
        busy = (r for r in range(self._size) if r not in status or status[r].state != "idle")
        self.busy = {rank: status[rank].cell if rank in status else None for rank in busy}
        self.running = self.busy.keys() & status.keys()
        names = {said.group for said in status.values()}
        sizes = {said.world_size for said in status.values()}
        is_one = len(names) == 1 and None not in names
        if len(status) == self._size and is_one and sizes == {self._size}:
            self.suspect = self._is_unanswered = False
        elif self._is_unanswered:
            self.late = set(range(self._size))
        elif not self.busy:
            self.repaired = await self._make(within or patience.busy_answer)
            self.suspect = not self.repaired
        return not self.suspect

    async def _make(self, limit: float) -> bool:
        request = RegroupRequest(
            name=uuid.uuid4().hex,
            generation=self._link.generation,
            until=time.time() + limit,
            world_size=self._size,
            sent=time.monotonic(),
        )
        # Ranks that met nobody say so at the end of the limit.
        replies = await self._connection.request(
            request, RegroupReply, timeout=limit + patience.cleanup
        )
        every = set(range(self._size))
        self.wrapped.update(*(reply.wrapped for reply in replies.values()))
        if any(reply.failure for reply in replies.values()):
            if time.time() > request.until - patience.instant:
                self.late = every - replies.keys() or every
            # Others may wait in torch for those that gave up.
            self.break_up()
        elif silent := every - replies.keys():
            self.late, self._is_unanswered = silent, True
        else:
            return True
        return False
