"""Run code on ranks: one signed message out to all, their replies and outputs back by rank."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import Session

from ..errors import DistError
from .agent_link import AgentLink, Snapshot
from .folder import CONFIG, endpoint
from .greeting import wait_for_greeting
from .tasks import Tasks

Message = dict[str, Any]
OnOutput = Callable[[int, str, dict[str, Any]], None]

METADATA = "jupyter_dist"
"""Key of our part of a request's metadata: ``{"execution_count": 7}``."""

_OUTPUTS = frozenset(
    ["stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"]
)
_LAST_WORDS = 0.1
"""Seconds for which outputs of a dead rank, already on their way, are waited for."""


@dataclass
class Reply:
    """How a cell ended on one rank."""

    rank: int
    status: str
    """``ok``, ``error``, ``aborted`` or ``dead``."""
    content: dict[str, Any] = field(default_factory=dict)


class Execution:
    """One cell on its way through the ranks.

    Parameters
    ----------
    ranks : list of int
        Where it runs.
    on_output : callable
        Called in the event loop with ``(rank, message type, content)``, in order for each rank.
        The last call for a rank has the type ``finished`` and the content ``{status, ename,
        evalue}``.
    """

    def __init__(self, ranks: Iterable[int], on_output: OnOutput) -> None:
        self.id = ""
        self.begun: set[int] = set()
        """Ranks that run it or have run it; on others it waits behind somebody else's cell."""
        self.replies: dict[int, Reply] = {}
        self.done = asyncio.Event()
        self._on_output = on_output
        self._waiting = {rank: {"reply", "idle"} for rank in ranks}

    @property
    def outstanding(self) -> list[int]:
        """Ranks that have not finished."""
        return sorted(self._waiting)

    def output(self, rank: int, kind: str, content: dict[str, Any]) -> None:
        """Pass on what a rank shows."""
        if rank in self._waiting:
            self._on_output(rank, kind, content)

    def finish(self, rank: int, part: str) -> None:
        """Note that a rank replied, or went idle: it is done when both are in."""
        if rank in self._waiting:
            self._waiting[rank].discard(part)
            if not self._waiting[rank]:
                self._drop(rank)

    def lose(self, rank: int, why: str) -> None:
        """Note that a rank died, or that nobody waits for it any more."""
        if rank in self._waiting:
            self.replies[rank] = Reply(rank, "dead", {"ename": "RankDied", "evalue": why})
            self._drop(rank)

    def _drop(self, rank: int) -> None:
        del self._waiting[rank]
        reply = self.replies[rank]
        names = {name: reply.content.get(name, "") for name in ("ename", "evalue")}
        self._on_output(rank, "finished", {"status": reply.status, **names})
        if not self._waiting:
            self.done.set()


class PoolClient:
    """A client of all ranks of one pool, with a session of its own.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        config = json.loads((folder / CONFIG).read_text())
        self.world_size: int = config["world_size"]
        self.dead: dict[int, str] = {}
        """Ranks that are gone, and why."""
        self.generation: int | None = None
        self.link = AgentLink(self._on_snapshot)
        self._session = Session(key=config["key"].encode(), username="jupyter-dist")
        self._context = zmq.asyncio.Context()
        self._sockets: dict[tuple[int, str], zmq.asyncio.Socket] = {}
        self._readers = Tasks()
        self._executions: dict[str, Execution] = {}
        self._queries: dict[tuple[str, int], asyncio.Future[Message]] = {}
        self._greeted = {rank: asyncio.Event() for rank in range(self.world_size)}

    async def connect(self, timeout: float = 10.0) -> None:
        """Connect to the agent and every living rank, until no output can be missed any more.

        Raises
        ------
        DistError
            If the pool does not answer within `timeout` seconds.
        """
        try:
            await asyncio.wait_for(self._connect(), timeout)
        except (asyncio.TimeoutError, OSError) as error:
            await self.close()
            raise DistError(
                "pool_unreachable",
                f"The pool does not answer: {str(error) or f'no reply in {timeout:g} s'}.",
                "Stop it with %dist_shutdown and start a new one.",
            ) from error

    async def _connect(self) -> None:
        await self.link.connect(self.folder)
        await self.link.first.wait()
        for rank in range(self.world_size):
            for channel in ("shell", "iopub", "stdin", "control"):
                self._open(rank, channel)
        for rank, greeted in self._greeted.items():
            await wait_for_greeting(greeted, self._sockets[rank, "iopub"])

    def _open(self, rank: int, channel: str) -> None:
        socket = self._context.socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
        socket.linger = 0
        socket.set_hwm(0)
        if channel == "iopub":
            socket.subscribe(b"")
        else:
            socket.identity = self._session.bsession  # stdin finds its way back by this name
        socket.connect(endpoint(self.folder, rank, channel))
        self._sockets[rank, channel] = socket
        self._readers.add(self._read(rank, channel, socket))

    async def _read(self, rank: int, channel: str, socket: zmq.asyncio.Socket) -> None:
        while True:
            frames = await socket.recv_multipart()
            _, parts = self._session.feed_identities(frames)
            self._receive(rank, channel, self._session.deserialize(parts))

    def _receive(self, rank: int, channel: str, message: Message) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"].get("msg_id", "")
        if kind == "iopub_welcome":
            self._greeted[rank].set()
        elif channel != "iopub" and (query := self._queries.pop((parent, rank), None)):
            query.set_result(message)
        elif execution := self._executions.get(parent):
            if kind == "execute_reply":
                execution.replies[rank] = Reply(rank, content["status"], content)
                execution.finish(rank, "reply")
            elif kind == "status" and content["execution_state"] == "idle":
                execution.finish(rank, "idle")
            elif kind == "execute_input":
                execution.begun.add(rank)
            elif kind in _OUTPUTS:
                execution.output(rank, kind, content)
            elif kind == "input_request":
                execution.output(rank, kind, content | {"parent": message["header"]})

    def _on_snapshot(self, snapshot: Snapshot) -> None:
        self.generation = snapshot["generation"]
        for record in snapshot["ranks"]:
            rank = record["rank"]
            if record["state"] == "dead" and rank not in self.dead:
                self.dead[rank] = record["exit"]
                self._greeted[rank].set()
                asyncio.get_running_loop().call_later(_LAST_WORDS, self._lose, rank, record["exit"])

    def _lose(self, rank: int, why: str) -> None:
        for execution in self._executions.values():
            execution.lose(rank, why)
        for (parent, asked), query in list(self._queries.items()):
            if asked == rank:
                self._queries.pop((parent, asked)).cancel()
                query.cancel()

    async def execute(
        self,
        code: str,
        ranks: Iterable[int],
        on_output: OnOutput,
        *,
        execution_count: int | None = None,
        allow_stdin: bool = False,
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
        started : callable
            Called with the `Execution` once the code is on its way.

        Returns
        -------
        dict
            A `Reply` by rank.
        """
        ranks = sorted(ranks)
        execution = Execution(ranks, on_output)
        message = self._session.msg(
            "execute_request",
            {
                "code": code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": allow_stdin,
                "stop_on_error": False,  # another client's queued cell must not be dropped
            },
            metadata={METADATA: {"execution_count": execution_count}},
        )
        execution.id = message["header"]["msg_id"]
        self._executions[execution.id] = execution
        closed = asyncio.create_task(self._lose_all_when_closed(execution))
        try:
            self._send(message, [rank for rank in ranks if rank not in self.dead], "shell")
            for rank in ranks:
                if rank in self.dead:
                    execution.lose(rank, self.dead[rank])
            started(execution)
            await execution.done.wait()
        finally:
            closed.cancel()
            del self._executions[execution.id]
        return execution.replies

    async def _lose_all_when_closed(self, execution: Execution) -> None:
        await self.link.closed.wait()
        await asyncio.sleep(_LAST_WORDS)
        for rank in execution.outstanding:
            execution.lose(rank, "the pool has ended")

    def _send(
        self, message: Message, ranks: Iterable[int], channel: str, buffers: Sequence[Any] = ()
    ) -> None:
        frames = self._session.serialize(message)  # once: all ranks of a pool share the key
        for rank in ranks:
            # Goes out at once: the high-water mark is off, so there is nothing to await.
            self._sockets[rank, channel].send_multipart([*frames, *buffers], copy=not buffers)

    def send_input(self, rank: int, value: str, request: dict[str, Any]) -> None:
        """Answer a rank's ``input()``; `request` is the header that came with it."""
        message = self._session.msg("input_reply", {"value": value}, parent={"header": request})
        self._send(message, [rank], "stdin")

    def cancel(self, execution: Execution) -> None:
        """Interrupt an execution where it runs, and drop it where it still waits for its turn.

        A cell of somebody else that runs there meanwhile is left alone.
        """
        outstanding = set(execution.outstanding)
        self.interrupt(outstanding & execution.begun)
        message = self._session.msg("dist_cancel_request", {"msg_id": execution.id})
        waiting = outstanding - execution.begun - set(self.dead)
        self._send(message, waiting, "control")

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
        message = self._session.msg(kind, content)
        loop = asyncio.get_running_loop()
        queries = {rank: loop.create_future() for rank in asked}
        identity = message["header"]["msg_id"]
        self._queries |= {(identity, rank): query for rank, query in queries.items()}
        try:
            self._send(message, asked, channel, buffers)
            if queries:
                await asyncio.wait(queries.values(), timeout=timeout)
        finally:
            for rank in asked:
                self._queries.pop((identity, rank), None)
        return {
            rank: query.result()
            for rank, query in queries.items()
            if query.done() and not query.cancelled()
        }

    async def status(self, timeout: float = 2.0) -> dict[int, dict[str, Any]]:
        """Ask every living rank how it is; those that do not answer in time are left out.

        Returns
        -------
        dict
            ``{rank, pid, state, since, memory}`` by rank, see `RankKernel`.
        """
        replies = await self.ask("dist_status_request", {}, timeout=timeout)
        return {rank: reply["content"] for rank, reply in replies.items()}

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        await self._readers.cancel()
        await self.link.close()
        self._context.destroy(linger=0)
