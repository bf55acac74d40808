"""A connection to the ranks of a pool: sockets to chosen channels, and questions with answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import zmq
from jupyter_client.session import Session

from ..common.folder import endpoint, read_config
from ..common.protocol.cell_messages import cell_topic
from ..common.protocol.rank_messages import (
    RankRequest,
    RankStatus,
    Reply,
    StatusRequest,
    read_content,
)

_LOG = logging.getLogger(__name__)

Message = dict[str, Any]
Topics = Callable[[int, str], Iterable[bytes]]
"""Returns what to subscribe to on a rank's iopub channel, given the rank and our session's id."""

_SLICE = 0.02
"""Seconds for which messages are read before the loop does something else."""
_FIRST_NUDGE, _LAST_NUDGE = 0.1, 10.0
"""Seconds between two nudges, at first and at last: a rank may be stopped for hours."""


def output_topics(rank: int, session: str) -> list[bytes]:
    """Return the topics of all that a rank shows, and of the replies to one client."""
    own = f"kernel.rank-{rank}."
    ours = [f"{own}execute_result".encode(), f"{own}error".encode(), cell_topic(session)]
    return [b"stream.", b"display_data", b"comm-", *ours]


def status_topics(rank: int, session: str) -> list[bytes]:
    """Return the topic on which a rank says whether it is busy."""
    return [f"kernel.rank-{rank}.status".encode()]


def read_reply(rank: int, message: Message, form: type[Reply]) -> Reply | None:
    """Return what a rank has replied; `None`, and a line in the log, if it is something else."""
    content = message["content"]
    try:
        return read_content(content, form)
    except ValueError as error:
        why = content.get("evalue", error) if isinstance(content, dict) else error
        kind = message["header"]["msg_type"]
        _LOG.error("The %s of rank %s cannot be used: %s", kind, rank, why)
        return None


@cache
def _context(process: int) -> zmq.Context[zmq.Socket[bytes]]:
    """Return the ZMQ context of this process; a fork must not use its parent's."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, context.get(zmq.SOCKET_LIMIT))
    return context


class RankConnection:
    """Sockets to all ranks of one pool, with a session of its own; used in one event loop.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    channels : collection of str
        Of `CHANNELS` in `common.folder`, those that are wanted.
    topics : callable
        What to subscribe to on ``iopub``.

    Attributes
    ----------
    dead : dict
        Ranks that are gone, and why, see `note_death`.
    subshells : dict
        By rank, the id of a thread there that answers while a cell runs.

    Raises
    ------
    OSError
        If the pool has ended.
    """

    def __init__(
        self,
        folder: Path,
        channels: Collection[str] = ("control",),
        topics: Topics = output_topics,
    ) -> None:
        config = read_config(folder)
        self.folder = folder
        self.world_size = config.world_size
        self.gpus = [rank.gpu for rank in config.ranks]
        self.session = Session(key=config.key.encode(), username="jupyter-dist")
        self.dead: dict[int, str] = {}
        self.subshells: dict[int, str] = {}
        self._channels = channels
        self._topics = topics
        self._sockets: dict[tuple[int, str], zmq.Socket[bytes]] = {}
        self._answers: dict[tuple[str, int], asyncio.Future[Message]] = {}
        self._subscribed = {rank: asyncio.Event() for rank in range(self.world_size)}

    # -- sockets ----------------------------------------------------------------------------

    def open(self) -> None:
        """Connect to the ranks."""
        for rank in range(self.world_size):
            for channel in self._channels:
                self._open(rank, channel)

    def _open(self, rank: int, channel: str) -> None:
        socket = _context(os.getpid()).socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
        socket.linger = 0
        socket.set_hwm(0)
        if channel == "iopub":
            for topic in self._topics(rank, self.session.session):
                socket.subscribe(topic)
        else:
            socket.identity = self.session.bsession  # stdin finds its way back by this name
        socket.connect(endpoint(self.folder, rank, channel))
        self._sockets[rank, channel] = socket
        # Much quicker than zmq.asyncio, which makes a future for each message.
        asyncio.get_running_loop().add_reader(socket.FD, self._drain, rank, channel)
        self._drain(rank, channel)

    def _drain(self, rank: int, channel: str) -> None:
        """Read all messages: the socket's descriptor tells of a change only once."""
        socket = self._sockets.get((rank, channel))
        until = time.monotonic() + _SLICE
        while socket and not socket.closed and int(socket.get(zmq.EVENTS)) & zmq.POLLIN:
            frames = socket.recv_multipart()
            try:
                _, parts = self.session.feed_identities(frames)
                self._hear(rank, channel, self.session.deserialize(parts))
            except Exception:  # the messages behind it, a cell's reply perhaps, are still to come
                _LOG.exception("Handling a message of rank %s on channel %s failed", rank, channel)
            if time.monotonic() > until:  # a rank that shows much must not hold up everybody else
                asyncio.get_running_loop().call_soon(self._drain, rank, channel)
                return

    def _hear(self, rank: int, channel: str, message: Message) -> None:
        answer = self._answers.get((message["parent_header"].get("msg_id", ""), rank))
        if message["header"]["msg_type"] == "iopub_welcome":
            self._subscribed[rank].set()
        elif channel == "iopub" or not answer:
            self.on_message(rank, channel, message)
        elif not answer.done():
            answer.set_result(message)

    def on_message(self, rank: int, channel: str, message: Message) -> None:
        """Take a message that answers no question; for subclasses."""

    def send(
        self, message: Message, ranks: Iterable[int], channel: str, buffers: Sequence[Any] = ()
    ) -> None:
        """Send a message to ranks; those that are not connected are left out."""
        frames = self.session.serialize(message)  # once: all ranks of a pool share the key
        for rank in ranks:
            if socket := self._sockets.get((rank, channel)):
                # Goes out at once: the high-water mark is off, so there is nothing to await.
                socket.send_multipart([*frames, *buffers], copy=not buffers)
                # Sending may have swallowed the descriptor's news of a message.
                self._drain(rank, channel)

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        self.give_up()
        for event in self._subscribed.values():
            event.set()
        for socket in self._sockets.values():
            asyncio.get_running_loop().remove_reader(socket.FD)
            socket.close()
        self._sockets.clear()

    async def __aenter__(self) -> RankConnection:
        self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        await self.close()

    # -- the subscription -------------------------------------------------------------------

    @property
    def silent(self) -> list[int]:
        """Ranks that have not confirmed our subscription: what they show now could be missed."""
        return [rank for rank, event in self._subscribed.items() if not event.is_set()]

    def note_death(self, rank: int, why: str) -> None:
        """Ask a rank nothing any more; answers that are on their way are still taken."""
        self.dead[rank] = why
        self._subscribed[rank].set()

    async def subscribed(self, ranks: Iterable[int]) -> None:
        """Return when ranks have confirmed our subscription (Jupyter's iopub_welcome), or ended."""
        await asyncio.gather(*map(self._until_subscribed, ranks))

    async def _until_subscribed(self, rank: int) -> None:
        # ipykernel sends on the same socket past its event loop, which may then overlook a
        # subscription until the next one comes. So we subscribe to something else until it looks.
        for attempt in count():
            patience = min(_FIRST_NUDGE * 1.5**attempt, _LAST_NUDGE)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._subscribed[rank].wait(), patience)
            if self._subscribed[rank].is_set():
                return
            self._sockets[rank, "iopub"].subscribe(f"nudge-{attempt}")

    # -- questions --------------------------------------------------------------------------

    def begin(
        self,
        kind: str,
        content: dict[str, Any],
        ranks: Iterable[int],
        *,
        channel: str = "control",
        buffers: Sequence[Any] = (),
        header: dict[str, Any] | None = None,
    ) -> dict[int, asyncio.Future[Message]]:
        """Send one request to ranks; return what becomes their replies, or is cancelled."""
        message = self.session.msg(kind, content)
        message["header"] |= header or {}
        request, loop = message["header"]["msg_id"], asyncio.get_running_loop()
        answers: dict[int, asyncio.Future[Message]] = {rank: loop.create_future() for rank in ranks}
        for rank, answer in answers.items():
            self._answers[request, rank] = answer
            answer.add_done_callback(partial(self._forget, (request, rank)))
        self.send(message, answers, channel, buffers)
        return answers

    def _forget(self, request: tuple[str, int], _: object) -> None:
        del self._answers[request]

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
        living = [rank for rank in chosen if rank not in self.dead]
        answers = self.begin(kind, content, living, channel=channel, buffers=buffers, header=header)
        try:
            if answers:
                await asyncio.wait(answers.values(), timeout=timeout)
            return {
                rank: answer.result()
                for rank, answer in answers.items()
                if answer.done() and not answer.cancelled()
            }
        finally:
            for answer in answers.values():
                answer.cancel()

    async def request(
        self,
        request: RankRequest,
        form: type[Reply],
        ranks: Iterable[int] | None = None,
        *,
        channel: str = "control",
        timeout: float | None = None,
    ) -> dict[int, Reply]:
        """Send one of our own requests to ranks, as `ask` does; return replies of a form by rank.

        A rank that answers something else is left out too.
        """
        said = await self.ask(
            request.kind, request.content, ranks, channel=channel, timeout=timeout
        )
        replies = {rank: read_reply(rank, message, form) for rank, message in said.items()}
        return {rank: reply for rank, reply in replies.items() if reply is not None}

    def tell(self, request: RankRequest) -> None:
        """Send a request to the control channel of every living rank; nobody waits for replies."""
        living = [rank for rank in range(self.world_size) if rank not in self.dead]
        self.send(self.session.msg(request.kind, request.content), living, "control")

    async def status(
        self, timeout: float = 2.0, ranks: Iterable[int] | None = None
    ) -> dict[int, RankStatus]:
        """Ask living ranks how they are; those that do not answer in time are left out."""
        return await self.request(StatusRequest(), RankStatus, ranks, timeout=timeout)

    def give_up(self, rank: int | None = None) -> None:
        """Expect nothing any more from one rank, or from all."""
        for (_, asked), answer in list(self._answers.items()):
            if rank in (None, asked):
                answer.cancel()
