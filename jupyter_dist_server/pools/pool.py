"""The life of one pool, from the side of whoever holds it: the server, or a kernel."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import DistError
from .adoption import Found, sweep
from .agent_link import Snapshot
from .client import PoolClient
from .folder import create_folder
from .held_agent import HeldAgent
from .holders import Owner
from .launch import Launch
from .one_rank import check_running
from .ranks import check_ranks
from .reasons import too_slow
from .records import PoolRecord, PoolState, Reason
from .stopping import free
from .tasks import Tasks
from .watcher import Watcher, rank_states

DEFAULT_TIMEOUT = 120.0
"""Seconds that a start may take; importing torch from a cold disk takes most of it."""


class Pool:
    """One pool and the agent that holds its ranks.

    Parameters
    ----------
    record : PoolRecord
        What is known of it.
    on_change : callable
        Called with the pool after each change of its `record`.
    owner : Owner
        Who we are, to whom the pool's agent listens.
    watch : bool
        Whether to follow which ranks are busy (the server shows it in the panel).
    timeout : float
        Seconds that the start may take.
    """

    def __init__(
        self,
        record: PoolRecord,
        on_change: Callable[[Pool], None],
        owner: Owner,
        watch: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.record = record
        self.timeout = timeout
        self.ended = asyncio.Event()
        self._on_change = on_change
        self._owner = owner
        self._watch = watch
        self._watcher: Watcher | None = None
        self._agent = HeldAgent(record, self._on_snapshot)
        self._link = self._agent.link
        self._launch: Launch | None = None
        self._changed = asyncio.Event()
        self._tasks = Tasks()
        self._life: asyncio.Task[None] | None = None
        self._late: Reason | None = None
        self._why_stopped: Reason | None = None
        self._cancelled = False

    @classmethod
    def found(
        cls, found: Found, on_change: Callable[[Pool], None], owner: Owner, watch: bool = False
    ) -> Pool:
        """Return a pool that runs already; `adopt` makes it ours too."""
        record = PoolRecord.from_json(found.config["record"] | {"folder": str(found.folder)})
        return cls(record, on_change, owner, watch, found.config["timeout"])

    def start(self, launch: Launch) -> None:
        """Begin to start; `record` tells how it goes."""
        self._launch = launch
        launch.begin(self._on_waiting)
        self._life = self._tasks.add(self._live())

    def adopt(self) -> None:
        """Begin to hold a pool that runs already."""
        self._life = self._tasks.add(self._live())

    def change(self, **fields: Any) -> None:
        """Change the record and tell everybody."""
        for name, value in fields.items():
            setattr(self.record, name, value)
        self.record.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
        self._on_change(self)

    async def changed_since(self, version: int, wait: float) -> None:
        """Return when the record is newer than `version`, at the latest after `wait` seconds."""
        deadline = time.monotonic() + wait
        while self.record.version <= version and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)

    # -- commands ---------------------------------------------------------------------------

    async def stop(self, why: Reason | None = None) -> None:
        """Stop the pool, or cancel its start, and wait until nothing of it is left."""
        if not self.record.state.ended:
            self._cancelled = True
            self._why_stopped = why
            if self._launch:
                self._launch.cancel()
            if self.record.state is not PoolState.COMPLETING:
                self.change(state=PoolState.COMPLETING)
            self._agent.end()
        if self._life:
            await asyncio.wait([self._life])  # not for `ended`, if the whole loop is ending

    async def release(self) -> None:
        """Let the pool go on without us; its other holders keep it."""
        if self._life:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        if self._watcher:
            await self._watcher.close()
        await self._link.close()

    def interrupt(self, ranks: Iterable[int] | None = None) -> None:
        """Send SIGINT to some or all ranks.

        Raises
        ------
        DistError
            If the pool is not running, or lacks one of `ranks`.
        """
        self._check_running("interrupt")
        chosen = list(range(self.record.world_size) if ranks is None else ranks)
        check_ranks(chosen, self.record.world_size)
        self._link.send("interrupt", ranks=chosen)

    def kill(self, ranks: Iterable[int]) -> None:
        """End some ranks at once, whatever they do; their variables are lost.

        Raises
        ------
        DistError
            If the pool is not running, or one of `ranks` is dead or unknown.
        """
        self._check_running("kill ranks")
        chosen = list(ranks)
        check_ranks(chosen, self.record.world_size)
        for rank in chosen:
            check_running(self.record.ranks[rank])
        self._link.send("kill", pids=[self.record.ranks[rank].pid for rank in chosen])

    async def free(self) -> None:
        """End collectives in which ranks wait although all were interrupted.

        Whoever runs the cell sees it fail, and makes the process group again.
        """
        client = PoolClient(Path(self.record.folder))
        try:
            # A rank that is stuck greets nobody, and the others must not wait for it.
            await client.connect(outputs=False)
            await free(client)
        except OSError:
            return  # the pool has ended meanwhile
        finally:
            await client.close()

    def restart(self, ranks: Iterable[int] | None = None) -> None:
        """Replace some or all ranks; their variables are lost.

        Raises
        ------
        DistError
            If the pool is not running, or lacks one of `ranks`.
        """
        self._check_running("restart")
        chosen = list(range(self.record.world_size) if ranks is None else ranks)
        check_ranks(chosen, self.record.world_size)
        self._await_ranks()
        self._link.send("restart", ranks=chosen)

    def _await_ranks(self) -> None:
        self.change(state=PoolState.CONFIGURING, progress={"phase": "restarting ranks", "ready": 0})
        self._tasks.add(self._limit_restart())

    async def _limit_restart(self) -> None:
        """End a pool whose new ranks are not ready in time."""
        generation = self.record.generation
        await asyncio.sleep(self.timeout)
        stuck = self.record.generation in (generation, generation + 1)
        if stuck and self.record.state is PoolState.CONFIGURING:
            self._late = too_slow(self.record, self.timeout)
            self._agent.end()

    def _check_running(self, what: str) -> None:
        if self.record.state is not PoolState.RUNNING:
            raise DistError(
                "pool_not_running",
                f"The pool cannot {what}: it is {self.record.state.value}.",
                "Start a pool with %dist_init." if self.record.state.ended else "",
            )

    # -- life -------------------------------------------------------------------------------

    async def _live(self) -> None:
        reason: Reason | None = None
        try:
            await (self._start(self._launch) if self._launch else self._reconnect())
            if not self._cancelled:
                reason = await self._wait_until_running()
                if not self._launch and not reason and self._watch:
                    for rank, said in (await rank_states(Path(self.record.folder))).items():
                        self._on_rank_state(rank, **said)  # its cell may have begun long ago
            if not reason and not self._cancelled:
                await self._link.closed.wait()
                reason = self._late or await self._unexpected_end()
        except DistError as error:
            reason = Reason(error.code, error.message, error.hint)
        except Exception as error:  # whatever it was, it must be said and cleaned up after
            reason = Reason("start_failed", f"The pool could not be started: {error!r}.")
        try:
            await self._clean_up(unexpected=reason is not None and not self._cancelled)
        finally:
            done = PoolState.COMPLETED if self.record.started else PoolState.CANCELLED
            state = done if self._cancelled else PoolState.FAILED
            reason = self._why_stopped if self._cancelled else reason
            self.change(state=state, reason=reason, ended=time.time())
            self.ended.set()

    async def _start(self, launch: Launch) -> None:
        allocation = await launch.allocation()
        if allocation is None:
            return
        with contextlib.closing(allocation):
            await asyncio.to_thread(sweep)
            folder = create_folder()
            self.change(
                state=PoolState.CONFIGURING,
                folder=str(folder),
                progress={"phase": "importing torch", "ready": 0},
                **allocation.fields,
            )
            self._agent.process = await launch(folder, self.record, self.timeout, allocation)
        if self._cancelled:  # while a zygote was asked for it
            self._agent.end()
        await self._agent.connect(self._owner)

    def _on_waiting(self, reason: str) -> None:
        self.change(progress={"phase": "waiting for GPUs", "ready": 0, "reason": reason})

    async def _reconnect(self) -> None:
        self.change(state=PoolState.CONFIGURING, progress={"phase": "connecting", "ready": 0})
        try:
            await self._agent.connect(self._owner)
        except OSError:
            self._cancelled = True  # it has just been stopped by somebody else
            return
        await self._agent.meet()

    async def _wait_until_running(self) -> Reason | None:
        closed = asyncio.create_task(self._link.closed.wait())
        deadline = time.monotonic() + self.timeout
        try:
            while not self._all_settled():
                left = deadline - time.monotonic()
                if left <= 0:
                    return too_slow(self.record, self.timeout)
                changed = asyncio.create_task(self._changed.wait())
                await asyncio.wait(
                    {changed, closed}, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
                changed.cancel()
                if closed.done():
                    return await self._unexpected_end()
        finally:
            closed.cancel()
        await self._watch_ranks()
        if not self._cancelled:
            self.change(state=PoolState.RUNNING, started=time.time())
        return None

    def _all_settled(self) -> bool:
        """Tell whether no rank is still starting; one that has died later stays dead."""
        said = self._link.snapshot
        if not said or said["failure"] or said["stopping"]:
            return False
        return all(rank.state != "starting" for rank in self.record.ranks)

    async def _watch_ranks(self) -> None:
        if self._watch and not self._cancelled:
            old, self._watcher = self._watcher, Watcher(self.record.folder, self._on_rank_state)
            if old:
                await old.close()
            await self._watcher.ready()

    async def _unexpected_end(self) -> Reason | None:
        if self._cancelled:
            return None
        snapshot = self._link.snapshot or {}
        if failure := snapshot.get("failure"):
            return Reason(**failure)
        if snapshot.get("stopping"):
            self._cancelled = True  # by somebody else who holds it, or as nobody did
            return None
        return await self._agent.why_ended()

    async def _clean_up(self, unexpected: bool) -> None:
        if self._watcher:
            await self._watcher.close()
        await self._agent.leave_nothing(unexpected)
        self.record.all_dead()

    # -- what the ranks do ------------------------------------------------------------------

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        new_generation = snapshot["generation"] != self.record.generation
        self.record.take(snapshot)
        self._agent.note_ranks()
        if new_generation and self.record.state is PoolState.RUNNING:
            self._await_ranks()  # somebody else who holds the pool replaces ranks
        ready = sum(record.state == "idle" for record in self.record.ranks)
        if new_generation or self.record.progress["phase"] == "starting ranks":
            self.record.progress = {"phase": "starting ranks", "ready": ready}
        self.change()
        if snapshot["stopping"] and self.record.state is PoolState.RUNNING:
            self.change(state=PoolState.COMPLETING)
        restarting = self.record.started and self.record.state is PoolState.CONFIGURING
        if restarting and self._all_settled() and self.record.progress["phase"] == "starting ranks":
            self.record.progress["phase"] = "connecting"
            self._tasks.add(self._finish_restart())

    async def _finish_restart(self) -> None:
        await self._watch_ranks()
        if self.record.state is PoolState.CONFIGURING:
            self.change(state=PoolState.RUNNING)

    def _on_rank_state(
        self, rank: int, state: str, cell: int | None, since: float | None = None
    ) -> None:
        if self.record.ranks[rank].turn(state, cell, since):
            self.change()
