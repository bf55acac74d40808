"""The life of one pool, in its owner: the server, or a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable

import msgspec

from ..client.agent_link import AgentLink
from ..common.background_tasks import Tasks, any_of
from ..common.errors import DistError
from ..common.pool_folder import create_folder
from ..common.protocol.agents.agent_messages import NoteIdle, Rename, Snapshot
from ..common.protocol.agents.attachment import Owner
from ..common.protocol.failure_reason import Reason
from ..common.protocol.offers import InLine
from ..common.protocol.pool_record import PoolRecord, PoolState, Progress
from .busy_ranks import Activity
from .discovery import Found, sweep
from .end_reasons import agent_ended, broken
from .idleness import Idleness, follows_idleness
from .live_record import LiveRecord
from .park_pool import Parker
from .pool_agent import PoolAgent
from .processes.agent_process import AgentProcess
from .processes.start_agent import Launch
from .processes.zygote_registry import ZygoteEnded
from .rank_commands import RankCommands
from .resize_pool import Resizer

_LOG = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 120.0
"""Seconds that a start may take; importing torch from a cold disk takes most of it."""


class Pool(LiveRecord):
    """One pool and its agent; with `watch`, it follows which ranks are busy, for the panel."""

    def __init__(
        self,
        record: PoolRecord,
        on_change: Callable[[Pool], None],
        owner: Owner,
        watch: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        super().__init__(record)
        self._timeout = timeout
        self.ended = asyncio.Event()
        self._on_change = on_change
        self._owner = owner
        self._activity = Activity(record, self.change) if watch else None
        self._tasks = Tasks()
        self._idleness = (
            Idleness(record, self._note_idle, self._end_idle, self._park_idle, self._tasks)
            if watch
            else None
        )
        self.agent = PoolAgent(record, self._on_snapshot)
        self._launch: Launch | None = None
        self._not_parked = ""
        self._ending = asyncio.Event()
        """Set when its agent is not waited for any more, whether or not the agent knows."""
        self.commands = RankCommands(self, self.agent, self._tasks, timeout, self._give_up)
        self.resizer = Resizer(self, self.agent, self._tasks)
        self.parker = Parker(self, self.agent, self._tasks)
        self._life: asyncio.Task[None] | None = None
        self._late: Reason | None = None
        self._why_stopped: Reason | None = None
        self._cancelled = False
        self._deadline = math.inf

    @classmethod
    def found(
        cls, found: Found, on_change: Callable[[Pool], None], owner: Owner, watch: bool = False
    ) -> Pool:
        """Return a pool that runs already; `adopt` attaches us to it."""
        record = msgspec.structs.replace(found.config.record, folder=str(found.folder))
        watch = watch or follows_idleness(record)
        pool = cls(record, on_change, owner, watch, found.config.timeout)
        pool.agent.process = AgentProcess(found.snapshot.process)
        return pool

    def tell(self) -> None:
        """Tell all listeners that the record has changed."""
        self._on_change(self)
        if self._idleness:
            self._idleness.look()

    @property
    def _link(self) -> AgentLink:
        return self.agent.link

    def start(self, launch: Launch) -> None:
        """Begin to start; `record` shows the progress."""
        self._launch = launch
        launch.begin(self._on_waiting)
        self._life = self._tasks.add(self._live())

    def adopt(self) -> None:
        """Attach to a pool that runs already."""
        self._life = self._tasks.add(self._live())

    def rename(self, moved: Callable[[str], str]) -> None:
        """Call its notebooks by the present names of their files."""
        known = {self.record.name, *(one.name for one in self.record.attachments)}
        names = {name: moved(name) for name in known if moved(name) != name}
        if names:
            self._link.send(Rename(names))
            self.change(name=names.get(self.record.name, self.record.name))

    async def stop(self, why: Reason | None = None) -> None:
        """Stop the pool, or cancel its start, and wait until nothing of it is left."""
        if not self.record.state.ended:
            self._cancelled = True
            self._why_stopped = why
            if self._launch:
                self._launch.cancel()
            if self.record.state is not PoolState.COMPLETING:
                self.change(state=PoolState.COMPLETING)
            self._end()
        if self._life:
            await asyncio.wait([self._life])  # not for `ended`, if the whole loop is ending

    async def release(self) -> None:
        """Let the pool go on without us; its other attachments keep it.

        One that has no agent yet cannot: its start is cancelled.
        """
        if self._launch and not self.agent.process:
            await self.stop()
            return
        await self._stop_watching()
        await self._tasks.cancel()
        await self._link.close()

    def _note_idle(self, since: float | None) -> None:
        self._link.send(NoteIdle(since))
        self.change(idle_since=since)

    def _end_idle(self, why: Reason) -> None:
        self._tasks.add(self.stop(why))

    async def _park_idle(self) -> None:
        try:
            self.set_notice(self._not_parked, False)
            await self.parker.park(only_if_idle=True)
        except DistError as error:  # the notices say why its GPUs stay taken
            self._not_parked = error.message
            self.set_notice(self._not_parked, True)

    def _give_up(self, why: Reason) -> None:
        self._late = why
        self._end()

    def _end(self) -> None:
        self.agent.end()
        self._ending.set()

    async def _live(self) -> None:
        reason: Reason | None = None
        try:
            reason = await (self._start(self._launch) if self._launch else self._reconnect())
            if not reason and not self._cancelled:
                reason = await self._wait_until_running()
                if not self._launch and not reason and self._activity:
                    await self._activity.catch_up()
            if not reason and not self._cancelled:
                await self.agent.until_ended(self._owner, self._ending, self.set_notice)
                if not self._cancelled:
                    self.change(state=PoolState.COMPLETING)
                reason = self._late or await self._unexpected_end()
        except DistError as error:
            reason = Reason(error.code, error.message, error.hint)
        except Exception as error:  # whatever it was, it must be said and cleaned up after
            _LOG.exception("Pool %s is ended by an unexpected error", self.record.id)
            reason = broken(error, started=self.record.started is not None)
        try:
            await self._stop_watching()
            await self.agent.leave_nothing(reason is not None and not self._cancelled)
            self.record.all_dead()
        finally:
            done = PoolState.COMPLETED if self.record.started else PoolState.CANCELLED
            state = done if self._cancelled else PoolState.FAILED
            reason = self._why_stopped if self._cancelled else reason
            self.change(state=state, reason=reason, ended=time.time())
            self.ended.set()

    async def _start(self, launch: Launch) -> Reason | None:
        if (allocation := await launch.allocation()) is None:
            return None
        self._deadline = time.monotonic() + self._timeout
        with contextlib.closing(allocation):
            await asyncio.to_thread(sweep)
            folder = await asyncio.to_thread(create_folder)
            self.change(
                state=PoolState.CONFIGURING,
                folder=str(folder),
                progress=Progress("importing torch"),
                **launch.fields(allocation),
            )
            try:
                work = launch(folder, self.record, self._timeout, allocation)
                await self.agent.start(work, self._ending, self._timeout)
            except ZygoteEnded as error:
                return agent_ended(self.record, error.code)
        if self._ending.is_set():
            return None
        if not self.agent.process:
            return self.agent.why_late(self._timeout)
        try:
            await self.agent.connect(self._owner)
        except OSError:
            return await self.agent.why_ended()
        return None

    def _on_waiting(self, reason: str, line: InLine | None) -> None:
        self.change(progress=Progress("waiting for GPUs", reason=reason, line=line))

    async def _reconnect(self) -> None:
        self._deadline = time.monotonic() + self._timeout
        self.change(state=PoolState.CONFIGURING, progress=Progress("connecting"))
        try:
            await self.agent.connect(self._owner)
        except OSError:
            self._cancelled = True  # another client has just stopped it

    async def _wait_until_running(self) -> Reason | None:
        watched = -1
        while watched != self.record.generation:  # it may be resized as we adopt it
            while not self.agent.ranks_have_started():
                if (left := self._deadline - time.monotonic()) <= 0:
                    return self.agent.why_late(self._timeout)
                await any_of(self._changed, self._link.closed, self._ending, within=left)
                if self._link.closed.is_set() or self._ending.is_set():
                    return await self._unexpected_end()
            watched = self.record.generation
            await self._begin_to_watch()
        if not self._cancelled:
            if self._idleness and not self._launch:  # what its ranks have done is not known yet
                self._idleness.note_use(time.time())
            # One that is adopted has run for as long as its agent.
            age = self.agent.process.age if self.agent.process and not self._launch else 0.0
            self.change(state=self._running_state, started=time.time() - age)
        return None

    async def _begin_to_watch(self) -> None:
        if self._activity and not self._cancelled:
            await self._activity.begin()

    async def _stop_watching(self) -> None:
        if self._idleness:
            self._idleness.close()
        if self._activity:
            await self._activity.close()

    async def _unexpected_end(self) -> Reason | None:
        if self._cancelled:
            return None
        said = self._link.snapshot
        if said and said.failure:
            return said.failure
        if said and said.stopping:
            # By another client, without attachments, or at its time limit.
            self._cancelled, self._why_stopped = True, said.time.over
            return None
        return await self.agent.why_ended()

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        new_generation = snapshot.generation != self.record.generation
        self.take(snapshot)
        self.agent.note_ranks()
        if self.record.state in (PoolState.RUNNING, PoolState.SUSPENDED):
            self._note_parked()
        if self._idleness and snapshot.time.extended:
            self._idleness.note_use(snapshot.time.extended)
        if new_generation and self.record.state is PoolState.RUNNING:
            self.commands.expect_new_ranks()  # another client of the agent replaces ranks
        ready = sum(record.state == "idle" for record in self.record.ranks)
        if new_generation or self.record.progress.phase == "starting ranks":
            self.record.progress = Progress("starting ranks", ready)
        self.change()
        if snapshot.stopping and self.record.state is self._running_state:
            self.change(state=PoolState.COMPLETING)
        restarting = self.record.started and self.record.state is PoolState.CONFIGURING
        progress = self.record.progress
        if restarting and progress.phase == "starting ranks" and self.agent.ranks_have_started():
            progress.phase = "connecting"
            self._tasks.add(self._finish_restart())

    async def _finish_restart(self) -> None:
        generation = self.record.generation
        await self._begin_to_watch()
        if self.record.state is PoolState.CONFIGURING and generation == self.record.generation:
            self.change(state=self._running_state)

    @property
    def _running_state(self) -> PoolState:
        """`SUSPENDED` while its ranks are parked and others may have its GPUs."""
        parked = self.record.parked
        return PoolState.SUSPENDED if parked and not parked.leased else PoolState.RUNNING

    def _note_parked(self) -> None:
        if self.record.state is not self._running_state:
            self.record.state = self._running_state
            if self._idleness:
                self._idleness.note_use(time.time())
