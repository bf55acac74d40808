"""Commands to a running pool: interrupt, kill or replace ranks, let them run longer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from ..client.agent_link import can_connect, folder_removed
from ..client.cell_execution import Execution
from ..client.stop_cell import Interrupter, interrupter_of
from ..common.background_tasks import Tasks
from ..common.errors import DistError
from ..common.policy import allowed_limit
from ..common.protocol.agents.agent_messages import Extend, Kill, Restart
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_record import PoolState, Progress
from ..common.rank_specs import check_ranks
from ..jobs.rules.rules import check_extension
from .live_record import LiveRecord, check_running
from .pool_agent import PoolAgent
from .stack_and_log import check_rank_runs


@dataclass(eq=False)
class RankCommands:
    """Commands to the ranks of one pool.

    `_timeout` is how long new ranks may take, in seconds. Each command raises `DistError` if the
    pool is not running, lacks one of the ranks, or its agent is needed and does not answer.
    """

    _pool: LiveRecord
    _agent: PoolAgent
    _tasks: Tasks
    _timeout: float
    _give_up: Callable[[Reason], None]

    async def interrupt(self, ranks: Iterable[int] | None = None) -> None:
        """Interrupt some ranks; or begin to stop whatever all of them run, as Stop does."""
        self._check_running("interrupt")
        if ranks is None:
            self._tasks.add(self._stop_cells())
            return
        chosen = self._checked(ranks)
        silent: set[int] = set()
        with contextlib.suppress(FileNotFoundError):  # the pool has ended meanwhile
            async with self._interrupter() as interrupter:
                silent = await interrupter.interrupt(Execution(chosen, lambda *_: None))
        if silent:
            await self._check_heard()

    def _interrupter(self) -> AbstractAsyncContextManager[Interrupter]:
        return interrupter_of(Path(self._pool.record.folder), self._agent.link)

    async def _stop_cells(self) -> None:
        with contextlib.suppress(FileNotFoundError):  # the pool has ended meanwhile
            async with self._interrupter() as interrupter:
                await interrupter.stop_all()

    async def kill(self, ranks: Iterable[int]) -> None:
        """End some ranks at once; their variables are lost."""
        self._check_running("kill ranks")
        chosen = [self._pool.record.ranks[rank] for rank in self._checked(ranks)]
        for rank in chosen:
            check_rank_runs(rank)
        pids = [rank.pid for rank in chosen if rank.pid]
        self._agent.link.send(Kill(pids, [rank.rank for rank in chosen]))
        await self._check_heard()

    async def extend(self, seconds: float | None) -> None:
        """Let the pool run some seconds longer, if any are given, and forget its idle time."""
        if not self._pool.record.state.has_ranks:
            self._check_running("run longer")
        if seconds is not None:
            limit = self._pool.record.time_limit
            if limit is None:
                message = "The pool has no time limit, so it cannot be extended."
                raise DistError("bad_request", message, field="time")
            await asyncio.to_thread(allowed_limit, limit + seconds, True)
            record = self._pool.record
            gpus = [rank.gpu.uuid for rank in record.ranks if rank.gpu]
            until = (record.ends_by or time.time()) + seconds
            await asyncio.to_thread(check_extension, gpus, until)
        self._agent.link.send(Extend(seconds or 0.0))
        await self._check_heard()

    async def restart(
        self, ranks: Iterable[int] | None = None, without_lost_nodes: bool = False
    ) -> None:
        """Replace some or all ranks; their variables are lost.

        With `without_lost_nodes`, the pool goes on with the ranks of the other nodes, which get new
        numbers.
        """
        self._check_running("restart")
        if without_lost_nodes and not self._pool.record.lost_nodes:
            raise DistError(
                "bad_request",
                "No node of the pool is lost.",
                "%dist_restart replaces all ranks, with --ranks some.",
                field="without_lost_nodes",
            )
        chosen = self._checked(range(self._pool.record.world_size) if ranks is None else ranks)
        folder = Path(self._pool.record.folder)
        if not await asyncio.to_thread(can_connect, folder):
            raise folder_removed(folder).error()
        await self._check_heard()  # first: a pool whose new ranks are late is ended
        self._check_running("restart")
        if self._pool.record.parked:
            message = "The pool cannot restart ranks while it is parked or resumed."
            raise DistError("pool_not_running", message, "Resume it with %dist_resume first.")
        self.expect_new_ranks()
        self._agent.link.send(Restart(chosen, without_lost_nodes))

    def expect_new_ranks(self) -> None:
        """Wait for ranks that are being replaced, by us or by another client of the agent."""
        self._pool.change(state=PoolState.CONFIGURING, progress=Progress("restarting ranks"))
        self._tasks.add(self._limit_restart())

    async def _limit_restart(self) -> None:
        """End a pool whose new ranks are not ready in time."""
        generation = self._pool.record.generation
        deadline = time.monotonic() + self._timeout
        while self._pool.record.state is PoolState.CONFIGURING:
            if (left := deadline - time.monotonic()) > 0:
                await self._pool.changed_since(self._pool.record.version, left)
            else:
                if self._pool.record.generation in (generation, generation + 1):
                    self._give_up(self._agent.why_late(self._timeout))
                return

    def _checked(self, ranks: Iterable[int]) -> list[int]:
        chosen = list(ranks)
        check_ranks(chosen, self._pool.record.world_size)
        return chosen

    async def _check_heard(self) -> None:
        """Make sure that the agent hears commands."""
        if await self._agent.is_silent():
            raise await self._agent.link.silent_error()

    def _check_running(self, what: str) -> None:
        check_running(self._pool.record, what)
