"""The agent of one pool, in its owner: followed, ended, cleaned up."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ..client.agent_link import AgentLink, can_connect, folder_removed
from ..common.background_tasks import any_of
from ..common.patience import patience
from ..common.processes.pool_processes import ended_now, members_of_pool, session_members
from ..common.processes.process_ref import ProcessRef
from ..common.protocol.agents.agent_messages import Attach, NodeGpus, Snapshot, Stop, WatchGpus
from ..common.protocol.agents.attachment import Attachment, Owner
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_record import PoolRecord
from .end_reasons import agent_ended, agent_stopped, too_slow
from .processes.agent_process import AgentProcess

_LOG = logging.getLogger(__name__)


class PoolAgent:
    """The agent's process, our connection to it, and the ranks that it has reported.

    `process` is `None` until it is started, or has said which one it is.
    """

    def __init__(self, record: PoolRecord, on_snapshot: Callable[[Snapshot], None]) -> None:
        self.process: AgentProcess | None = None
        self.link = AgentLink(on_snapshot)
        self._record = record
        self._on_snapshot = on_snapshot
        self._silent = False
        self._watched = WatchGpus(None)
        self._on_gpus: Callable[[NodeGpus], None] = lambda _: None
        self._ranks: set[ProcessRef] = set()

    async def start(
        self, launch: Coroutine[Any, Any, AgentProcess], ending: asyncio.Event, limit: float
    ) -> None:
        """Launch its process, unless it is to end, or that takes too long."""
        launching = asyncio.create_task(launch)
        waiting = asyncio.create_task(ending.wait())
        try:
            either = launching, waiting
            await asyncio.wait(either, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if launching.done():
                self.process = launching.result()
        finally:
            launching.cancel()
            waiting.cancel()
            await asyncio.gather(launching, waiting, return_exceptions=True)

    async def connect(self, owner: Owner) -> None:
        """Connect to it, and attach to its pool; raise `OSError` if it has ended."""
        await self.link.connect(Path(self._record.folder))
        self.link.on_gpus = self._on_gpus
        if self._watched.settings:
            self.link.send(self._watched)
        # The last one, as an agent that could not start its ranks ends with it.
        self.link.send(Attach(Attachment.of_this_process(owner.kind)))

    def watch_gpus(self, wanted: WatchGpus, heard: Callable[[NodeGpus], None]) -> None:
        """Have GPUs of other nodes sampled; `heard` gets the news."""
        if wanted != self._watched:
            self._watched, self._on_gpus = wanted, heard
            self.link.on_gpus = heard
            self.link.send(wanted)

    async def _connect_again(self, owner: Owner) -> bool:
        """Connect again if only the connection was lost; tell whether that worked."""
        if not self.process or self.process.poll() is not None:
            return False
        await self.link.close()
        self.link = AgentLink(self._on_snapshot)
        try:
            await self.connect(owner)
        except OSError:  # it is ending just now
            return False
        return await self.link.answers()

    async def until_ended(
        self, owner: Owner, ending: asyncio.Event, tell: Callable[[str, bool], None]
    ) -> None:
        """Return when it has ended, or is to end; connect again if only the link ends.

        `tell` is called regularly with what may be wrong with it, and whether it is so.
        """
        watching = asyncio.create_task(self._watch(tell))
        try:
            while True:
                await any_of(ending, self.link.closed)
                said = self.link.snapshot
                if ending.is_set() or (said and (said.stopping or said.failure)):
                    return
                if not await self._connect_again(owner):
                    return
        finally:
            watching.cancel()

    async def _watch(self, tell: Callable[[str, bool], None]) -> None:
        folder = Path(self._record.folder)
        told = ""
        while True:
            await asyncio.sleep(5.0)
            silent = await self.is_silent()
            said = (await self.link.silent_error()).message if silent else ""
            for notice, holds in ((told, False), (said, True)):
                if notice and said != told:
                    tell(notice, holds)
            told = said
            tell(folder_removed(folder).message, not await asyncio.to_thread(can_connect, folder))

    def note_ranks(self) -> None:
        """Remember the processes of ranks, so that none is left at the end."""
        self._ranks.update(
            ProcessRef(rank.pid, rank.start_ticks)
            for rank in self._record.ranks
            if rank.pid and rank.start_ticks
        )

    def ranks_have_started(self) -> bool:
        """Tell whether no rank is still starting; one that dies later stays dead."""
        said = self.link.snapshot
        if not said or said.failure or said.stopping:
            return False
        return all(rank.state != "starting" for rank in self._record.ranks)

    @property
    def pid(self) -> int | None:
        """Its process ID, if it is known."""
        return self.process.pid if self.process else None

    async def is_silent(self) -> bool:
        """Tell whether it does not answer; if so, its end is not waited for as long."""
        self._silent = await self.link.is_silent()
        return self._silent

    def end(self) -> None:
        """Ask it to end, with all ranks; also one that is still importing torch."""
        self.link.send(Stop())  # also to an agent whose process is unknown
        if self.process:
            self.process.terminate()

    async def why_ended(self) -> Reason:
        """Say why it has closed the connection, though nobody has asked it to."""
        assert self.process is not None
        try:
            return agent_ended(self._record, await self.process.wait(patience.busy_answer))
        except asyncio.TimeoutError:
            return Reason(
                "agent_failed", "The pool's agent closed its connection, so the pool was ended."
            )

    def why_late(self, seconds: float) -> Reason:
        """Say why the ranks are not ready after some seconds."""
        if self.process and self.process.is_stopped:
            self._silent = True  # it cannot end by itself
            return agent_stopped(self.process.pid, seconds)
        return too_slow(self._record, seconds)

    async def leave_nothing(self, unexpected: bool) -> None:
        """End it, and leave no process and no file, whatever its state."""
        if self.process:
            self.end()
            try:
                await self.process.wait(patience.answer if self._silent else patience.end)
            except asyncio.TimeoutError:
                unexpected = True
                self.process.kill()
                try:
                    await self.process.wait(patience.busy_answer)
                except asyncio.TimeoutError:
                    _LOG.warning("The agent of %s was killed, but has not ended", self._record.id)
        await self.link.close()
        stuck = await ended_now(await asyncio.to_thread(session_members, self._ranks))
        if unexpected:  # the agent could not end what had left the ranks' sessions
            stuck += await ended_now(await asyncio.to_thread(members_of_pool, self._record.id))
        if stuck:
            pids = ", ".join(str(pid) for pid in sorted({process.pid for process in stuck}))
            _LOG.warning("Killed, but still in system calls: %s of %s", pids, self._record.id)
        if self._record.folder:
            await asyncio.to_thread(shutil.rmtree, self._record.folder, ignore_errors=True)
