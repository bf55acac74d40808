"""Runs code on ranks: sends one signed message to all, and takes replies and outputs by rank."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar, Protocol

from ..common.background_tasks import Tasks, any_of, within
from ..common.errors import DistError
from ..common.files.open_files import CLIENT_EACH, check_open_files
from ..common.patience import patience
from ..common.processes.process_ref import POOL_ENDED, RESIZED, RESTARTED
from ..common.protocol.agents.agent_messages import NoteCell, PoolTime, Snapshot
from ..common.protocol.jupyter_messages import Content, Message
from ..common.protocol.ranks.cell_messages import COMM_REQUESTS, COMM_STATUS
from ..common.protocol.ranks.rank_messages import CellRequest, ProfileOptions
from .agent_link import AgentLink, unreachable
from .cell_execution import Execution, Executions, OnOutput, Reply
from .group_recovery import GroupRecovery
from .halt_clock import HaltClock
from .ranks.rank_connection import RankConnection
from .stop_cell import Interrupter

OUTPUT_LIMIT = 10_000_000
"""Characters that one cell may show, all its ranks together; the rest goes to files."""
LARGEST_DISPLAY = 32 << 20
"""Bytes that one display may take."""
POOL_PARKED = "pool_parked"
"""The code of the error for cells that would need the GPUs of a parked pool."""
_COMMS = ("comm_open", "comm_msg", "comm_close", COMM_STATUS)
_LAST_WORDS = 0.05
"""Seconds for which outputs of a dead rank may be on their way."""


class CommListener(Protocol):
    """Joins the comms (widgets) of ranks to the front end; called in the client's loop."""

    def heard(self, client: PoolClient, rank: int, message: Message) -> None:
        """Take a message of a comm, or one caused by a front end's message to a comm."""

    def lost(self, client: PoolClient, rank: int | None = None) -> None:
        """Note that a rank died, or that the client has disconnected from all of them."""


class PoolClient(RankConnection):
    """A client of all ranks of the pool in a private folder, which runs cells on them."""

    comm_listener: ClassVar[CommListener | None] = None
    time_listeners: ClassVar[list[Callable[[PoolClient, PoolTime], None]]] = []
    """Called with the pool's remaining time at each snapshot."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ("cells", "shell", "iopub", "stdin", "control"))
        self.last_words: dict[int, list[str]] = {}
        """The last lines on stderr of ranks that died unasked."""
        self._pids: dict[int, int] = {}
        """Of the ranks that this client is connected to."""
        self._generation = 0
        self._is_over = False
        self.link = AgentLink(self._on_snapshot)
        self.link.on_late = self._on_late
        self.group = GroupRecovery(self, self.link)
        self._interrupter = Interrupter(self, self.link, self.group)
        self._tasks = Tasks()
        self.executions = Executions()
        self.halts = HaltClock()

    async def connect(self) -> None:
        """Connect to the agent and every living rank, until no output can be missed any more.

        Ranks that do not confirm this in time are `silent`. Raises `DistError` if the agent does
        not answer, or the pool has too many ranks for this process.
        """
        check_open_files(self.world_size, CLIENT_EACH)
        try:
            await self.link.connect(self.folder)
            await within(self.link.first.wait(), patience.node)
        except asyncio.TimeoutError:  # before `OSError`, which it is since Python 3.11
            await self.close()
            raise await self.link.silent_error() from None
        except OSError as error:
            await self.close()
            raise unreachable(self.folder, error) from error
        self._tasks.add(self._give_up_when_closed())
        self.open()
        subscribing = self._tasks.add(self.subscribed(range(self.world_size)))
        await asyncio.wait([subscribing], timeout=patience.busy_answer)
        if self.dead:
            self.group.break_up()  # perhaps no client was there to do so when they died

    def on_news(self, rank: int, channel: str, message: Message) -> None:
        """Take what a rank shows, says over comms, or how a cell ended."""
        is_of_comms = channel == "iopub" and (
            message["header"]["msg_type"] in _COMMS
            or message["parent_header"].get("msg_type") in COMM_REQUESTS
        )
        if not is_of_comms:
            self.executions.hear(rank, message)
        elif self.comm_listener:
            self.comm_listener.heard(self, rank, message)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        for listener in self.time_listeners:
            listener(self, snapshot.time)
        self.group.suspect |= snapshot.parked is not None  # ranks may have to leave it
        gone = dict.fromkeys(self._replaced(snapshot), RESTARTED)
        if snapshot.ranks and len(snapshot.ranks) != self.world_size:
            gone = dict.fromkeys(range(self.world_size), RESIZED)  # a new client knows all ranks
        for said in snapshot.ranks[: self.world_size]:
            self.gpus[said.rank] = said.gpu or self.gpus[said.rank]
            if said.state == "dead":
                gone[said.rank] = said.exit or ""
                self.last_words.setdefault(said.rank, said.stderr)
        died = sorted(gone.keys() - self.dead.keys())
        for rank in died:
            self.note_death(rank, gone[rank])
            asyncio.get_running_loop().call_later(_LAST_WORDS, self._lose, rank, gone[rank])
        if died and not snapshot.stopping:
            # Other ranks may have a newer group by now, which is left alone.
            self.group.break_up(self._generation or snapshot.generation)
        self._generation = snapshot.generation

    def _replaced(self, snapshot: Snapshot) -> set[int]:
        """Return the ranks in whose place there are others, or none any more.

        No snapshot need say that they died: a client gets the newest one alone, and the first
        node's agent hears of the end of ranks on other nodes after it has ordered new ones.
        """
        pids = {said.rank: said.pid for said in snapshot.ranks}
        self._pids = {rank: pid for rank, pid in pids.items() if pid} | self._pids
        left_out = set(range(len(pids), self.world_size))
        return left_out | {rank for rank, pid in self._pids.items() if pids.get(rank) != pid}

    def _lose(self, rank: int, why: str) -> None:
        if self.comm_listener:
            self.comm_listener.lost(self, rank)
        self.subshells.pop(rank, None)
        for execution in self.executions:
            if execution.cell_id and rank in execution.outstanding:
                self.link.send(NoteCell([rank], execution.cell_id))
            execution.lose(rank, why)
        self.give_up(rank)

    async def execute(
        self,
        code: str,
        ranks: Iterable[int],
        on_output: OnOutput,
        *,
        execution_count: int | None = None,
        cell_id: str | None = None,
        allow_stdin: bool = False,
        limit: int = OUTPUT_LIMIT,
        largest_display: int = LARGEST_DISPLAY,
        profile: ProfileOptions | None = None,
        source: str | None = None,
        started: Callable[[Execution], None] = lambda _: None,
    ) -> dict[int, Reply]:
        """Run code on ranks, wait until all of them are done, and return their replies by rank.

        See `CellRequest` for the options; `limit` is for all ranks together. Requests of
        ``input()`` come as outputs of the type ``input_request``. `started` is called once the
        execution waits for the lock. Raises `DistError` if the agent or a rank does not answer.
        """
        ranks = sorted(ranks)
        if not ranks:
            return {}
        execution = Execution(ranks, on_output, cell_id)
        message = self.session.msg(CellRequest.kind, {})
        execution.id, execution.is_queued = message["header"]["msg_id"], True
        # Two cells without a number must not write to one file.
        cell = execution.id.rpartition("_")[2] if execution_count is None else execution_count
        message["content"] = CellRequest(
            code=code,
            allow_stdin=allow_stdin,
            execution_count=execution_count,
            cell_id=cell_id,
            limit=limit // len(ranks),
            largest_display=largest_display,
            file=f"{self.folder.name}-{self.session.session[:4]}-cell-{cell}",
            profile=profile,
            source=source,
        ).content
        self.executions.add(execution)
        if self._is_over:
            self._lose_all(execution)
        started(execution)
        if await self.link.acquire_lock(execution.done):
            try:
                if self.link.is_parked:
                    raise DistError(
                        POOL_PARKED, "The pool is parked.", "Resume it with %dist_resume."
                    )
                await self._run_with_lock(message, execution)
            finally:
                self.link.lock.release()
        return execution.replies

    async def _check_that_they_answer(self, execution: Execution) -> None:
        """Wait for ranks that have been silent so far; sending them a cell could lose outputs."""
        silent = set(self.silent) & set(execution.outstanding)
        await any_of(self.subscribed(silent), execution.done, within=patience.busy_answer)
        if silent := set(self.silent) & set(execution.outstanding):
            raise await self.link.rank_silent(silent)

    async def repair_group(self) -> bool:
        """Make the process group whole, unless another notebook's cell runs; tell if it is."""
        taking = asyncio.ensure_future(self.link.acquire_lock(self.link.closed))
        try:
            has_lock = await within(taking, patience.cleanup)
        except asyncio.TimeoutError:  # the next cell of ours makes it
            has_lock = False
        except asyncio.CancelledError:
            if not taking.cancelled() and not taking.exception() and taking.result():
                self.link.lock.release()
            raise
        if has_lock:
            try:
                await self.group.repair()
            finally:
                self.link.lock.release()
        return not self.group.suspect

    async def _run_with_lock(self, message: Message, execution: Execution) -> None:
        if self.silent:
            await self._check_that_they_answer(execution)
        await self.group.prepare(execution)
        execution.is_queued = False
        ranks = execution.outstanding  # none if it was cancelled meanwhile
        self.send(message, [rank for rank in ranks if rank not in self.dead], "cells")
        for rank in ranks:
            if rank in self.dead:
                execution.lose(rank, self.dead[rank])
        await execution.done.wait()
        await self.group.check(execution.replies)

    async def _give_up_when_closed(self) -> None:
        await self.link.closed.wait()
        await asyncio.sleep(_LAST_WORDS)
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self.give_up()
        for execution in list(self.executions):
            self._lose_all(execution)

    def _lose_all(self, execution: Execution) -> None:
        for rank in execution.outstanding:
            execution.lose(rank, POOL_ENDED)

    def send_input(self, rank: int, value: str, request: Content) -> None:
        """Answer a rank's ``input()``; `request` is the header that came with it."""
        message = self.session.msg("input_reply", {"value": value}, parent={"header": request})
        self.send(message, [rank], "stdin")

    def stop(self, execution: Execution) -> None:
        """Begin to stop an execution; asked again, go on to the next step."""
        if execution.stopping:
            execution.hurry()
        else:
            execution.stopping = True
            self._tasks.add(self._interrupter.stop(execution))

    def _on_late(self, ranks: list[int]) -> None:
        """Give up ranks that did not stop for another client: they had their time."""
        for execution in self.executions:
            if not (execution.stopping or set(ranks).isdisjoint(execution.outstanding)):
                self._tasks.add(self._interrupter.give_up(execution))

    async def stop_all(self) -> list[int]:
        """Stop whatever the ranks run, for any client; return the ranks that did not stop."""
        with contextlib.suppress(FileNotFoundError):  # the pool has ended meanwhile
            return await self._interrupter.stop_all()
        return []

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        if self.comm_listener:
            self.comm_listener.lost(self)
        await self._tasks.cancel()
        await super().close()
        await self.link.close()
        self._end()  # or executions that still run would never return
