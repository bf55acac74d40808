"""Sockets to the ranks of a pool, for chosen channels, and the subscription to their outputs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import zmq
from jupyter_client.session import DELIM

from ...common.background_tasks import within
from ...common.pool_folder import endpoint, read_addresses, read_config
from ...common.protocol.jupyter_messages import Message
from ...common.protocol.node_addresses import show_client_keys
from ...common.protocol.pool_session import PoolSession
from ...common.protocol.ranks.cell_messages import cell_topic

_LOG = logging.getLogger(__name__)

Self = TypeVar("Self", bound="RankSockets")
Topics = Callable[[int, str], Iterable[bytes]]
"""Returns what to subscribe to on a rank's iopub channel, given the rank and our session's id."""

# As plain numbers: with pyzmq's enumerations, each operation takes as long as a system call.
_EVENTS, _READABLE, _MORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.SNDMORE)
_PARTS = 6
"""Of a message before its buffers: delimiter, signature, headers, metadata, content."""


def output_topics(rank: int, session: str) -> list[bytes]:
    """Return the topics of all that a rank shows, and of the replies to one client."""
    own = f"kernel.rank-{rank}."
    ours = [f"{own}execute_result".encode(), f"{own}error".encode(), cell_topic(session)]
    return [b"stream.", b"display_data", b"comm-", *ours]


def status_topics(rank: int, session: str) -> list[bytes]:
    """Return the topic on which a rank says whether it is busy."""
    return [f"kernel.rank-{rank}.status".encode()]


def _receive(socket: zmq.Socket[bytes]) -> list[Any]:
    """Receive a message whose buffers, pieces of values, are not copied."""
    frames = socket.recv_multipart(copy=False)
    parts: list[Any] = [frame.bytes for frame in frames[:_PARTS]]
    return parts + [frame.buffer for frame in frames[_PARTS:]]


@cache
def _context(process: int) -> zmq.Context[zmq.Socket[bytes]]:
    """Return the ZMQ context of this process; a fork must not use its parent's."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, context.get(zmq.SOCKET_LIMIT))
    return context


class RankSockets:
    """Sockets to all ranks of one pool, with a session of their own; used in one event loop.

    `channels` are those that are wanted of `CHANNELS` in `common.pool_folder`; `topics` returns
    what to subscribe to on ``iopub``. Raises `OSError` if the pool has ended.
    """

    def __init__(self, folder: Path, channels: Collection[str], topics: Topics) -> None:
        config = read_config(folder)
        self.folder = folder
        self.record = config.record
        """The record as it was before the start."""
        self.world_size = config.world_size
        self.gpus = [rank.gpu for rank in config.ranks]
        """As far as known before the start: other nodes choose theirs."""
        self.nodes = {rank: node.name for node in config.nodes for rank in node.ranks}
        """On which node each rank is, if there are several."""
        self.session = PoolSession(key=config.key.encode(), username="jupyter-dist")
        self.elsewhere = frozenset(range(self.world_size)) - frozenset(config.own)
        """Ranks on other nodes."""
        self.dead: dict[int, str] = {}
        """Ranks that are gone, and why."""
        self._keys = config.keys
        self._channels = channels
        self._topics = topics
        self._sockets: dict[tuple[int, str], zmq.Socket[bytes]] = {}
        self._subscribed = {rank: asyncio.Event() for rank in range(self.world_size)}

    def open(self) -> None:
        """Connect to the ranks."""
        self._addresses = read_addresses(self.folder) if self.elsewhere else {}
        for rank in range(self.world_size):
            for channel in self._channels:
                self._open(rank, channel)

    def _open(self, rank: int, channel: str) -> None:
        address = self._addresses.get(rank)
        if rank in self.elsewhere and not address:
            return  # its node did not start
        socket = _context(os.getpid()).socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
        socket.linger = 0
        socket.set_hwm(0)
        if address:  # a firewall between nodes forgets connections on which nothing is said
            socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
            socket.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 60)
        if channel == "iopub":
            for topic in self._topics(rank, self.session.session):
                socket.subscribe(topic)
        else:
            socket.identity = self.session.bsession  # stdin finds its way back by this name
        if address and self._keys:
            show_client_keys(socket, self._keys)
        socket.connect(endpoint(self.folder, rank, channel, address))
        self._sockets[rank, channel] = socket
        # Much faster than zmq.asyncio, which creates a future for each message.
        asyncio.get_running_loop().add_reader(socket.FD, self._drain, rank, channel)
        self._drain(rank, channel)

    def _drain(self, rank: int, channel: str) -> None:
        """Read all messages: the socket's descriptor tells of a change only once."""
        socket = self._sockets.get((rank, channel))
        until = time.monotonic() + 0.02
        while socket and not socket.closed and int(socket.get(_EVENTS)) & _READABLE:
            frames = _receive(socket) if channel == "control" else socket.recv_multipart()
            try:
                parts = frames[frames.index(DELIM) + 1 :]
                self._hear(rank, channel, self.session.deserialize(parts))
            except Exception:  # the messages behind it, a cell's reply perhaps, are still to come
                _LOG.exception("Handling a message of rank %s on channel %s failed", rank, channel)
            if time.monotonic() > until:  # a rank with much output must not delay everything else
                asyncio.get_running_loop().call_soon(self._drain, rank, channel)
                return

    def _hear(self, rank: int, channel: str, message: Message) -> None:
        if message["header"]["msg_type"] == "iopub_welcome":
            self._subscribed[rank].set()
        else:
            self.on_message(rank, channel, message)

    def on_message(self, rank: int, channel: str, message: Message) -> None:
        """Take a message; for subclasses."""

    def send(
        self, message: Message, ranks: Iterable[int], channel: str, buffers: Sequence[Any] = ()
    ) -> None:
        """Send a message to ranks; those that are not connected are left out."""
        # Once: all ranks of a pool share the key.
        parts: list[Any] = [*self.session.serialize(message), *buffers]
        *frames, last = parts
        copy = not buffers
        for rank in ranks:
            if socket := self._sockets.get((rank, channel)):
                # Goes out at once: the high-water mark is off, so there is nothing to await.
                send: Callable[[Any, int, bool], object] = socket.send
                for frame in frames:
                    send(frame, _MORE, copy)
                send(last, 0, copy)
                # Sending may have swallowed the descriptor's news of a message.
                self._drain(rank, channel)

    async def close(self) -> None:
        """Disconnect; the ranks go on."""
        for event in self._subscribed.values():
            event.set()
        for socket in self._sockets.values():
            asyncio.get_running_loop().remove_reader(socket.FD)
            socket.close()
        self._sockets.clear()

    async def __aenter__(self: Self) -> Self:
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
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
            pause = min(0.1 * 1.5**attempt, 10.0)  # a rank may be stopped for hours
            with contextlib.suppress(asyncio.TimeoutError):
                await within(self._subscribed[rank].wait(), pause)
            if self._subscribed[rank].is_set():
                return
            self._sockets[rank, "iopub"].subscribe(f"nudge-{attempt}")
