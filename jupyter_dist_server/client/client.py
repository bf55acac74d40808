"""Run code on ranks: one signed message out to all, their replies and outputs back by rank."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..common.errors import DistError
from ..common.folder import read_config
from ..common.open_files import CLIENT_EACH, check_open_files
from ..common.processes import POOL_ENDED, is_stopped
from ..common.tasks import Tasks
from .agent_link import AgentLink, Snapshot
from .channels import Channels, Message
from .comms import CommListener, NobodyListens, is_of_comms
from .execution import Execution, OnOutput, Reply
from .greeting import wait_for_greeting
from .group_recovery import GroupKeeper
from .interrupt import Ladder
from .queries import Queries
from .reasons import agent_silent, rank_silent

_OUTPUTS = frozenset(
    ["stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"]
)
OUTPUT_LIMIT = 10_000_000
"""Characters that one cell may show, all its ranks together; the rest goes to files."""
_REMEMBERED = 64
"""Cells whose threads may still print."""
_CANCEL_PATIENCE = 0.2
"""Seconds after which a rank that does not answer is interrupted by the agent."""
_GREETING = 3.0
"""Seconds within which ranks greet us, unless one is stopped or in C code that holds the GIL."""
_ANSWER = 5.0
"""The same for one that a cell is to run on."""
_ASK_EVERY = 0.05
"""Seconds between two looks at whether they have greeted us."""
_TURN_LOOK = 2.0
"""Seconds after which a cell that waits for its turn asks whether the agent is there."""
_LAST_WORDS = 0.05
"""Seconds for which outputs of a dead rank, already on their way, are waited for."""


class PoolClient:
    """A client of all ranks of one pool, with a session of its own.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    """

    comm_listener: ClassVar[CommListener] = NobodyListens()
    """Joins the ranks' comms to this process's front end, if it is a notebook's kernel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = read_config(folder)
        self.world_size: int = config["world_size"]
        self.dead: dict[int, str] = {}
        """Ranks that are gone, and why."""
        self.last_words: dict[int, list[str]] = {}
        """The last lines on stderr of those that died unasked."""
        self.gpus: list[dict[str, Any] | None] = [rank["gpu"] for rank in config["ranks"]]
        self.subshells: dict[int, str] = {}
        self.generation: int | None = None
        self.link = AgentLink(self._on_snapshot)
        self.group = GroupKeeper(self)
        self._channels = Channels(folder, config["key"], self._receive)
        self.session_id: str = self._channels.session.session
        self._tasks = Tasks()
        self._executions: OrderedDict[str, Execution] = OrderedDict()
        self._queries = Queries()
        self._greeted = {rank: asyncio.Event() for rank in range(self.world_size)}

    async def connect(self, timeout: float = 10.0, *, outputs: bool = True) -> None:
        """Connect to the agent and every living rank, until no output can be missed any more.

        Parameters
        ----------
        timeout : float
            Seconds.
        outputs : bool
            Whether outputs matter; else ranks need not greet us. One that does not in time is
            `silent`, and the others can be used.

        Raises
        ------
        DistError
            If the pool's agent does not answer within `timeout` seconds, or it has more ranks than
            this process can have connections to.
        """
        check_open_files(self.world_size, CLIENT_EACH)
        try:
            await self.link.connect(self.folder)
            await asyncio.wait_for(self.link.first.wait(), timeout)
        except OSError as error:
            await self.close()
            raise DistError(
                "pool_unreachable",
                f"The pool does not answer: {error}.",
                "Stop it with %dist_shutdown and start a new one.",
            ) from error
        except asyncio.TimeoutError:
            await self.close()
            raise self.agent_silent() from None
        self._tasks.add(self._end_queries_when_closed())
        sockets = [self._channels.open(rank) for rank in range(self.world_size)]
        if outputs:
            greetings = [
                self._tasks.add(wait_for_greeting(greeted, sockets[rank]))
                for rank, greeted in self._greeted.items()
            ]
            await asyncio.wait(greetings, timeout=_GREETING)
        if self.dead:
            self.group.break_up()  # perhaps nobody was there to do so when they died

    @property
    def silent(self) -> list[int]:
        """Living ranks that have not greeted us yet: what they show now could be missed."""
        return [rank for rank, greeted in self._greeted.items() if not greeted.is_set()]

    def agent_silent(self) -> DistError:
        """Return what to raise if the agent does not answer."""
        process = (self.link.snapshot or {}).get("process", {})
        return agent_silent(process.get("pid")).error()

    def _receive(self, rank: int, channel: str, message: Message) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"].get("msg_id", "")
        if kind == "iopub_welcome":
            self._greeted[rank].set()
        elif channel == "iopub" and is_of_comms(message):
            self.comm_listener.heard(self, rank, message)
        elif execution := self._executions.get(parent):
            if kind == "execute_reply":
                execution.finish(rank, content)
            elif kind in _OUTPUTS:
                execution.output(rank, kind, content)
            elif kind == "input_request":
                execution.output(rank, kind, content | {"parent": message["header"]})
        elif channel != "iopub":
            self._queries.answer(parent, rank, message)

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        self.generation = snapshot["generation"]
        died = False
        for record in snapshot["ranks"]:
            rank = record["rank"]
            if record["state"] == "dead" and rank not in self.dead:
                self.dead[rank] = record["exit"]
                self.last_words[rank] = record.get("stderr", [])
                self._greeted[rank].set()
                died = True
                asyncio.get_running_loop().call_later(_LAST_WORDS, self._lose, rank, record["exit"])
        if died and not snapshot["stopping"]:
            self.group.break_up()

    def _lose(self, rank: int, why: str) -> None:
        self.comm_listener.lost(self, rank)
        self.subshells.pop(rank, None)
        for execution in self._executions.values():
            execution.lose(rank, why)
        self._queries.give_up(rank)

    async def execute(
        self,
        code: str,
        ranks: Iterable[int],
        on_output: OnOutput,
        *,
        execution_count: int | None = None,
        allow_stdin: bool = False,
        limit: int = OUTPUT_LIMIT,
        started: Callable[[Execution], None] = lambda _: None,
    ) -> dict[int, Reply]:
        """Run code on ranks and wait, without a time limit, until all of them are done.

        Parameters
        ----------
        code : str
            A cell, as IPython understands it.
        ranks : iterable of int
            Where to run it.
        on_output : callable
            Called with ``(rank, message type, content)`` for every output.
        execution_count : int or None
            The number by which tracebacks name the cell.
        allow_stdin : bool
            Whether ``input()`` may ask; its requests come as outputs of type ``input_request``.
        limit : int
            Characters that all ranks together may show.
        started : callable
            Called with the `Execution` once it waits for its turn.

        Returns
        -------
        dict
            A `Reply` by rank.

        Raises
        ------
        DistError
            If the agent, or one of the ranks, does not answer.
        """
        ranks = sorted(ranks)
        if not ranks:
            return {}
        execution = Execution(ranks, on_output)
        message = self._channels.session.msg(
            "dist_cell_request",
            {
                "code": code,
                "allow_stdin": allow_stdin,
                "execution_count": execution_count,
                "limit": limit // len(ranks),
            },
        )
        execution.id = message["header"]["msg_id"]
        # Two cells without a number must not write to one file.
        cell = execution.id.rpartition("_")[2] if execution_count is None else execution_count
        message["content"]["file"] = f"{self.folder.name}-{self.session_id[:4]}-cell-{cell}"
        self._executions[execution.id] = execution
        if len(self._executions) > _REMEMBERED:
            self._forget_a_finished_one()
        closed = asyncio.create_task(self._lose_all_when_closed(execution))
        try:
            started(execution)
            if await self._take_turn(execution.done):
                try:
                    await self._run_in_turn(message, execution)
                finally:
                    self.link.turn.end()
        finally:
            closed.cancel()
        return execution.replies

    async def _take_turn(self, unless: asyncio.Event) -> bool:
        """Wait for the turn, however long others need it, but not for a silent agent."""
        if self.link.turn.is_mine:
            return await self.link.turn.take(unless=unless)
        taking = asyncio.create_task(self.link.turn.take(unless=unless))
        try:
            while not (await asyncio.wait({taking}, timeout=_TURN_LOOK))[0]:
                if await self.link.is_silent() and not taking.done():
                    raise self.agent_silent()
        except BaseException:
            if not taking.cancel() and taking.result():
                self.link.turn.end()
            raise
        return taking.result()

    async def _check_that_they_answer(self, execution: Execution) -> None:
        """Wait for ranks that have been silent so far; sending them a cell could lose outputs."""
        deadline = time.monotonic() + _ANSWER
        while silent := sorted(set(self.silent) & set(execution.outstanding)):
            if time.monotonic() > deadline:
                raise rank_silent(silent, self.world_size)
            await asyncio.sleep(_ASK_EVERY)

    async def mend(self) -> bool:
        """Make the process group whole, if it is not; tell whether it is."""
        if await self._take_turn(self.link.closed):
            try:
                await self.group.mend()
            finally:
                self.link.turn.end()
        return not self.group.suspect

    async def _run_in_turn(self, message: Message, execution: Execution) -> None:
        if self.silent:
            await self._check_that_they_answer(execution)
        await self.group.prepare(execution)
        ranks = execution.outstanding  # none if it was cancelled meanwhile
        self._channels.send(message, [rank for rank in ranks if rank not in self.dead], "cells")
        for rank in ranks:
            if rank in self.dead:
                execution.lose(rank, self.dead[rank])
        await execution.done.wait()
        await self.group.check(execution.replies)

    def forget(self, executions: Iterable[Execution]) -> None:
        """Take in nothing more of executions, which are otherwise remembered for their threads."""
        for execution in executions:
            self._executions.pop(execution.id, None)

    def _forget_a_finished_one(self) -> None:
        for known, execution in self._executions.items():
            if execution.done.is_set():
                del self._executions[known]
                return

    async def _end_queries_when_closed(self) -> None:
        await self.link.closed.wait()
        await asyncio.sleep(_LAST_WORDS)
        self._queries.give_up()

    async def _lose_all_when_closed(self, execution: Execution) -> None:
        await self.link.closed.wait()
        await asyncio.sleep(_LAST_WORDS)
        for rank in execution.outstanding:
            execution.lose(rank, POOL_ENDED)

    def pass_on(
        self, message: Message, ranks: Iterable[int], channel: str, buffers: Sequence[Any] = ()
    ) -> None:
        """Send a message that somebody else has made."""
        self._channels.send(message, ranks, channel, buffers)

    def send_input(self, rank: int, value: str, request: dict[str, Any]) -> None:
        """Answer a rank's ``input()``; `request` is the header that came with it."""
        message = self._channels.session.msg(
            "input_reply", {"value": value}, parent={"header": request}
        )
        self._channels.send(message, [rank], "stdin")

    def cancel(self, execution: Execution) -> asyncio.Task[None]:
        """Interrupt an execution where it runs, and drop it where it still waits for its turn.

        A cell of somebody else that runs there meanwhile is left alone.
        """
        return self._tasks.add(self._cancel(execution))

    def stop(self, execution: Execution) -> None:
        """Begin to stop an execution, gently first; asked again, go on to the next rung."""
        if execution.ladder is None:
            execution.ladder = Ladder(self, execution)
            self._tasks.add(execution.ladder.climb())
        else:
            execution.ladder.press()

    async def _cancel(self, execution: Execution) -> None:
        asked = set(execution.outstanding)
        content = {"msg_id": execution.id}
        answers = await self.ask("dist_cancel_request", content, asked, timeout=_CANCEL_PATIENCE)
        for rank, said in answers.items():
            if said["content"]["running"]:
                execution.begun.add(rank)
                execution.places.setdefault(rank, said["content"])
        # A rank whose threads are all stuck in C code is not asked: its subprocesses may hear it.
        deaf = asked - set(answers) - set(self.dead)
        execution.begun |= deaf
        execution.stopped = set(self.stopped(deaf))
        self.interrupt(deaf)

    def stopped(self, ranks: Iterable[int]) -> list[int]:
        """Return those of some ranks whose process is stopped, by a signal or a debugger."""
        known = (self.link.snapshot or {}).get("ranks", [])
        pids = {rank["rank"]: rank["pid"] for rank in known if rank["state"] != "dead"}
        return [rank for rank in ranks if is_stopped(pids.get(rank))]

    def interrupt(self, ranks: Iterable[int]) -> None:
        """Send SIGINT to ranks and to the subprocesses in their groups, through the agent."""
        self.link.send("interrupt", ranks=sorted(ranks))

    async def ask(
        self,
        kind: str,
        content: dict[str, Any],
        ranks: Iterable[int] | None = None,
        *,
        channel: str = "control",
        buffers: Sequence[Any] = (),
        header: dict[str, Any] | None = None,
        timeout: float | None = None,
    ) -> dict[int, Message]:
        """Send one request to ranks and wait for their replies.

        Parameters
        ----------
        kind : str
            The message type, such as ``complete_request``.
        content : dict
            The message's content.
        ranks : iterable of int or None
            Whom to ask; `None` is every living rank.
        channel : str
            ``control`` is answered while a cell runs, ``shell`` after it.
        buffers : sequence
            Binary data that goes with the message, uncopied.
        header : dict or None
            What the message's header says besides the usual.
        timeout : float or None
            Seconds to wait; `None` is for as long as the ranks live.

        Returns
        -------
        dict
            The whole reply (``content``, ``buffers``, …) by rank, without the ranks that died or
            did not answer in time.
        """
        chosen = range(self.world_size) if ranks is None else ranks
        asked = [rank for rank in chosen if rank not in self.dead]
        message = self._channels.session.msg(kind, content)
        message["header"] |= header or {}

        def send() -> None:
            self._channels.send(message, asked, channel, buffers)

        return await self._queries.ask(message["header"]["msg_id"], asked, send, timeout)

    def tell(self, kind: str, content: dict[str, Any]) -> None:
        """Send a request to the control channel of every living rank; nobody waits for replies."""
        living = [rank for rank in range(self.world_size) if rank not in self.dead]
        self._channels.send(self._channels.session.msg(kind, content), living, "control")

    async def status(self, timeout: float = 2.0) -> dict[int, dict[str, Any]]:
        """Ask every living rank how it is; those that do not answer in time are left out.

        Returns
        -------
        dict
            What each says of itself, by rank; see `RankKernel`.
        """
        replies = await self.ask("dist_status_request", {}, timeout=timeout)
        return {rank: reply["content"] for rank, reply in replies.items()}

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        self.comm_listener.lost(self)
        await self._tasks.cancel()
        self._channels.close()
        await self.link.close()
