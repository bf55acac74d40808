"""The agent of one pool as its owner holds it: listened to, ended, and cleared up behind."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from .agent_link import AgentLink, Snapshot
from .agent_process import AgentProcess
from .holders import Owner, describe
from .processes import ProcessRef, end_now, members_of_pool, session_members
from .reasons import agent_ended
from .records import PoolRecord, Reason

_END_PATIENCE = 5.0
"""Seconds for which an agent that has hung up may take to end."""
_STOP_PATIENCE = 12.0
"""Seconds after which an agent that does not end by itself is killed."""


class HeldAgent:
    """The agent's process, our connection to it, and the ranks that it has told us of.

    Parameters
    ----------
    record : PoolRecord
        Of its pool.
    on_snapshot : callable
        Called with each snapshot that it sends.

    Attributes
    ----------
    process : AgentProcess or None
        `None` until it is started, or has said which one it is.
    link : AgentLink
        The connection.
    """

    def __init__(self, record: PoolRecord, on_snapshot: Callable[[Snapshot], None]) -> None:
        self.process: AgentProcess | None = None
        self.link = AgentLink(on_snapshot)
        self._record = record
        self._ranks: set[ProcessRef] = set()

    async def connect(self, owner: Owner) -> None:
        """Connect to it, and hold its pool.

        Raises
        ------
        OSError
            If it has ended.
        """
        await self.link.connect(Path(self._record.folder))
        self.link.send("hold", who=describe(owner.kind))

    async def meet(self) -> None:
        """Wait until an agent that was started by somebody else has said which process it is."""
        await self.link.first.wait()
        if snapshot := self.link.snapshot:
            self.process = AgentProcess(ProcessRef(**snapshot["process"]))

    def note_ranks(self) -> None:
        """Remember which processes the ranks are, so that none is left at the end."""
        self._ranks.update(
            ProcessRef(rank.pid, rank.start_ticks)
            for rank in self._record.ranks
            if rank.pid and rank.start_ticks
        )

    def end(self) -> None:
        """Ask it to end, with all ranks; also one that is still importing torch."""
        self.link.send("stop")  # to one whose process we could not tell, too
        if self.process:
            self.process.signal(signal.SIGTERM)

    async def why_ended(self) -> Reason:
        """Say why it has hung up, though nobody has asked it to."""
        assert self.process is not None
        try:
            return agent_ended(self._record, await self.process.wait(_END_PATIENCE))
        except asyncio.TimeoutError:
            return Reason("agent_failed", "The pool's agent hung up, so the pool was ended.")

    async def leave_nothing(self, unexpected: bool) -> None:
        """End it, and leave no process and no file, whatever state it is in."""
        if self.process:
            self.end()
            try:
                await self.process.wait(_STOP_PATIENCE)
            except asyncio.TimeoutError:
                self.process.signal(signal.SIGKILL)
                await self.process.wait()
        await self.link.close()
        await asyncio.to_thread(lambda: end_now(session_members(self._ranks)))
        if unexpected:  # the agent could not end what had left the ranks' sessions
            await asyncio.to_thread(lambda: end_now(members_of_pool(self._record.id)))
        if self._record.folder:
            shutil.rmtree(self._record.folder, ignore_errors=True)
