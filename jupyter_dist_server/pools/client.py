"""Run code on ranks: one signed message out to all, their replies and outputs back by rank."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.session import Session

from ..errors import DistError
from .agent_link import AgentLink, Snapshot
from .execution import Execution, OnOutput, Reply
from .folder import CONFIG, endpoint
from .greeting import wait_for_greeting
from .tasks import Tasks

Message = dict[str, Any]

METADATA = "jupyter_dist"
"""Key of our part of a request's metadata: ``{"execution_count": 7}``."""

_OUTPUTS = frozenset(
    ["stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"]
)
OUTPUT_LIMIT = 10_000_000
"""Characters that one cell may show, all its ranks together; the rest goes to files."""
_TOPICS = (b"stream.", b"display_data", b"comm-")
"""What ipykernel calls what we want of a rank's iopub channel, besides the topics of its own."""
_REMEMBERED = 64
"""Cells whose threads may still print."""
_CANCEL_PATIENCE = 0.2
"""Seconds after which a rank that does not answer is interrupted by the agent."""
_LAST_WORDS = 0.1
"""Seconds for which outputs of a dead rank, already on their way, are waited for."""


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
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._sockets: dict[tuple[int, str], zmq.Socket[bytes]] = {}
        self._tasks = Tasks()
        self._executions: OrderedDict[str, Execution] = OrderedDict()
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
            for channel in ("cells", "shell", "iopub", "stdin", "control"):
                self._open(rank, channel)
        for rank, greeted in self._greeted.items():
            await wait_for_greeting(greeted, self._sockets[rank, "iopub"])

    def _open(self, rank: int, channel: str) -> None:
        socket = self._context.socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
        socket.linger = 0
        socket.set_hwm(0)
        if channel == "iopub":
            own = f"kernel.rank-{rank}."
            for topic in (*_TOPICS, f"{own}execute_result".encode(), f"{own}error".encode()):
                socket.subscribe(topic)
            socket.subscribe(cell_topic(self._session.session))
        else:
            socket.identity = self._session.bsession  # stdin finds its way back by this name
        socket.connect(endpoint(self.folder, rank, channel))
        self._sockets[rank, channel] = socket
        # Much quicker than zmq.asyncio, which makes a future for each message.
        asyncio.get_running_loop().add_reader(socket.FD, self._drain, rank, channel)
        self._drain(rank, channel)

    def _drain(self, rank: int, channel: str) -> None:
        """Take all messages: the socket's descriptor tells of a change only once."""
        socket = self._sockets.get((rank, channel))
        while socket and not socket.closed and socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            _, parts = self._session.feed_identities(socket.recv_multipart())
            self._receive(rank, channel, self._session.deserialize(parts))

    def _receive(self, rank: int, channel: str, message: Message) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"].get("msg_id", "")
        if kind == "iopub_welcome":
            self._greeted[rank].set()
        elif execution := self._executions.get(parent):
            if kind == "execute_reply":
                execution.finish(rank, content)
            elif kind in _OUTPUTS:
                execution.output(rank, kind, content)
            elif kind == "input_request":
                execution.output(rank, kind, content | {"parent": message["header"]})
        elif channel != "iopub" and (query := self._queries.pop((parent, rank), None)):
            query.set_result(message)

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
        limit: int | None = None,
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
        limit : int or None
            Characters that all ranks together may show; `None` is `OUTPUT_LIMIT`.
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
            "dist_cell_request",
            {
                "code": code,
                "allow_stdin": allow_stdin,
                "limit": (limit or OUTPUT_LIMIT) // len(ranks),
                "file": f"{self.folder.name}-cell-{execution_count}",
            },
            metadata={METADATA: {"execution_count": execution_count}},
        )
        execution.id = message["header"]["msg_id"]
        self._executions[execution.id] = execution
        if len(self._executions) > _REMEMBERED:
            self._forget_a_finished_one()
        closed = asyncio.create_task(self._lose_all_when_closed(execution))
        try:
            self._send(message, [rank for rank in ranks if rank not in self.dead], "cells")
            for rank in ranks:
                if rank in self.dead:
                    execution.lose(rank, self.dead[rank])
            started(execution)
            await execution.done.wait()
        finally:
            closed.cancel()
        return execution.replies

    def _forget_a_finished_one(self) -> None:
        for known, execution in self._executions.items():
            if execution.done.is_set():
                del self._executions[known]
                return

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
            # Sending may have swallowed the descriptor's news of a message.
            self._drain(rank, channel)

    def send_input(self, rank: int, value: str, request: dict[str, Any]) -> None:
        """Answer a rank's ``input()``; `request` is the header that came with it."""
        message = self._session.msg("input_reply", {"value": value}, parent={"header": request})
        self._send(message, [rank], "stdin")

    def cancel(self, execution: Execution) -> None:
        """Interrupt an execution where it runs, and drop it where it still waits for its turn.

        A cell of somebody else that runs there meanwhile is left alone.
        """
        self._tasks.add(self._cancel(execution))

    async def _cancel(self, execution: Execution) -> None:
        asked = set(execution.outstanding)
        content = {"msg_id": execution.id}
        answers = await self.ask("dist_cancel_request", content, asked, timeout=_CANCEL_PATIENCE)
        execution.begun |= {rank for rank, said in answers.items() if said["content"]["running"]}
        # A rank whose threads are all stuck in C code is not asked: its subprocesses may hear it.
        deaf = asked - set(answers) - set(self.dead)
        execution.begun |= deaf
        self.interrupt(deaf)

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
        await self._tasks.cancel()
        for socket in self._sockets.values():
            asyncio.get_running_loop().remove_reader(socket.FD)
        self._sockets.clear()
        await self.link.close()
        self._context.destroy(linger=0)


def cell_topic(session: str) -> bytes:
    """Return the iopub topic on which a client, known by its session's id, gets its replies."""
    return f"jupyter-dist.{session}".encode()
