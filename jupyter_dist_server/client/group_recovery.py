"""A client's part in the recovery of the process group: abort it and re-create it."""

from __future__ import annotations

import asyncio
import time
import uuid

from ..common.protocol.ranks.cell_messages import GROUP
from ..common.protocol.ranks.rank_messages import BreakRequest, RegroupReply, RegroupRequest
from .agent_link import AgentLink
from .cell_execution import Execution, Reply
from .ranks.rank_connection import RankConnection

_ANSWER = 0.3
"""Seconds within which a rank tells its status, unless C code holds the GIL."""
_SLOW_ANSWER = 3.0
"""The same for those that did not: a busy machine may keep them from it. It is waited once."""
_ASK_EVERY = 0.05
"""Seconds between two looks at ranks that are busy with a cell that nobody waits for."""
_ASK_LATER = 0.5
"""The same once they have been waited for for a while."""
PATIENCE = 5.0
"""Seconds that the ranks may take to meet in a new group, before a cell."""
_MORE = 1.4
"""How many times as long their replies may take: those that met nobody say so at its end."""
LATE = 30.0
"""The same with further tries, if ranks that are idle did not meet: the machine may be busy."""
AFTER_CELL = 1.5
"""The same after a cell that did not end well: who has stopped it waits for this."""


class GroupRecovery:
    """Keeps the process group whole; used only while the client has the execution lock.

    Parameters
    ----------
    connection : RankConnection
        To their control and shell channels.
    link : AgentLink
        To their agent.

    Attributes
    ----------
    suspect : bool
        Whether the group may be broken: it is looked at before the next cell.
    repaired : bool
        Whether the process group was unusable after the last cell, and was re-created.
    busy : dict
        Ranks that kept it from being re-created, with the cell that each runs as far as it says.
    running : set of int
        Those of them that say that they run one.
    late : set of int
        Ranks that were idle, and for which the others waited in vain.
    """

    def __init__(self, connection: RankConnection, link: AgentLink) -> None:
        self.repaired = False
        self.busy: dict[int, int | None] = {}
        self.running: set[int] = set()
        self.late: set[int] = set()
        self.suspect = True  # whoever used the pool before us may have left it so
        self._is_unanswered = False
        """Whether ranks still follow the last order to meet, or wait for a store in vain."""
        self._deaf: set[int] = set()
        """Ranks that are not waited for, as they did not answer the last time."""
        self._size = connection.world_size
        self._connection = connection
        self._link = link

    def break_up(self, generation: int | None = None, group: str = "") -> None:
        """End every collective, on all ranks: some of those that it waits for will not come.

        Parameters
        ----------
        generation : int or None
            How often ranks had been replaced when the need arose; `None` is until now.
        group : str
            The group that is meant; a rank that is slow to hear of this may be in a newer one. If
            empty, that is any that was asked for until now.
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
        if not late:
            await self.repair(AFTER_CELL)

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
            if waited > (LATE if self.late else PATIENCE) and not awaited & self.running:
                if self._is_unanswered:
                    self.break_up()
                return
            await asyncio.sleep(_ASK_EVERY if waited < PATIENCE else _ASK_LATER)

    async def repair(self, patience: float = PATIENCE) -> bool:
        """Make the group again if it is broken, and all ranks are there and idle.

        Parameters
        ----------
        patience : float
            Seconds that the ranks may take to meet.

        Returns
        -------
        bool
            Whether it is whole now.
        """
        self.busy, self.running, self.late = {}, set(), set()
        if not self.suspect:
            return True
        if self._connection.dead:
            return False
        status = await self._connection.status(timeout=_ANSWER)
        self._deaf -= status.keys()
        slow = set(range(self._size)) - status.keys() - self._deaf
        slow -= set(self._link.stopped(slow))
        if slow and not self._link.closed.is_set():
            status |= await self._connection.status(timeout=_SLOW_ANSWER, ranks=slow)
            self._deaf |= slow - status.keys()
        busy = (r for r in range(self._size) if r not in status or status[r].state != "idle")
        self.busy = {rank: status[rank].cell if rank in status else None for rank in busy}
        self.running = self.busy.keys() & status.keys()
        names = {said.group for said in status.values()}
        if len(status) == self._size and len(names) == 1 and None not in names:
            self.suspect = self._is_unanswered = False
        elif self._is_unanswered:
            self.late = set(range(self._size))
        elif not self.busy:
            self.repaired = await self._make(patience)
            self.suspect = not self.repaired
        return not self.suspect

    async def _make(self, patience: float) -> bool:
        request = RegroupRequest(
            uuid.uuid4().hex, self._link.generation, time.time() + patience, time.monotonic()
        )
        replies = await self._connection.request(
            request, RegroupReply, channel="shell", timeout=patience * _MORE
        )
        every = set(range(self._size))
        if any(reply.failure for reply in replies.values()):
            if time.time() > request.until - _ANSWER:
                self.late = every - replies.keys() or every
            # Others may wait in torch for those that gave up.
            self.break_up()
        elif silent := every - replies.keys():
            self.late, self._is_unanswered = silent, True
        else:
            return True
        return False
