"""A client's sockets to the ranks of a pool, and its session of signed messages."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.session import Session

from ..common.folder import endpoint
from ..common.protocol.cells import cell_topic
from ..common.rank_specs import MAX_RANKS

_LOG = logging.getLogger(__name__)

Message = dict[str, Any]

_SLICE = 0.02
"""Seconds for which messages are taken in before the loop does something else."""
_CHANNELS = ("cells", "shell", "iopub", "stdin", "control")
_TOPICS = (b"stream.", b"display_data", b"comm-")
"""What ipykernel calls what we want of a rank's iopub channel, besides the topics of its own."""


class Channels:
    """Connections to all channels of ranks.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    key : str
        Signs the messages.
    on_message : callable
        Called in the event loop with ``(rank, channel, message)``.
    """

    def __init__(
        self, folder: Path, key: str, on_message: Callable[[int, str, Message], None]
    ) -> None:
        self.session = Session(key=key.encode(), username="jupyter-dist")
        self._folder = folder
        self._on_message = on_message
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, len(_CHANNELS) * MAX_RANKS)
        self._sockets: dict[tuple[int, str], zmq.Socket[bytes]] = {}

    def open(self, rank: int) -> zmq.Socket[bytes]:
        """Connect to all channels of a rank; return the socket of its iopub channel."""
        for channel in _CHANNELS:
            self._open(rank, channel)
        return self._sockets[rank, "iopub"]

    def _open(self, rank: int, channel: str) -> None:
        socket = self._context.socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
        socket.linger = 0
        socket.set_hwm(0)
        if channel == "iopub":
            own = f"kernel.rank-{rank}."
            for topic in (*_TOPICS, f"{own}execute_result".encode(), f"{own}error".encode()):
                socket.subscribe(topic)
            socket.subscribe(cell_topic(self.session.session))
        else:
            socket.identity = self.session.bsession  # stdin finds its way back by this name
        socket.connect(endpoint(self._folder, rank, channel))
        self._sockets[rank, channel] = socket
        # Much quicker than zmq.asyncio, which makes a future for each message.
        asyncio.get_running_loop().add_reader(socket.FD, self._drain, rank, channel)
        self._drain(rank, channel)

    def _drain(self, rank: int, channel: str) -> None:
        """Take all messages: the socket's descriptor tells of a change only once."""
        socket = self._sockets.get((rank, channel))
        until = time.monotonic() + _SLICE
        while socket and not socket.closed and int(socket.get(zmq.EVENTS)) & zmq.POLLIN:
            frames = socket.recv_multipart()
            try:
                _, parts = self.session.feed_identities(frames)
                self._on_message(rank, channel, self.session.deserialize(parts))
            except Exception:  # the messages behind it, a cell's reply perhaps, are still to come
                _LOG.exception("A message of rank %s on its channel %s failed", rank, channel)
            if time.monotonic() > until:  # a rank that shows much must not hold up everybody else
                asyncio.get_running_loop().call_soon(self._drain, rank, channel)
                return

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

    def close(self) -> None:
        """Disconnect."""
        for socket in self._sockets.values():
            asyncio.get_running_loop().remove_reader(socket.FD)
        self._sockets.clear()
        self._context.destroy(linger=0)
