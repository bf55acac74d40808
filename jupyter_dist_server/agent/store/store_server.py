"""The agent's end of a store: ranks of its node ask on a Unix socket in the private folder."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from ...common.peers import check_unix_peer
from ...common.pool_folder import store_socket
from ...common.protocol.store_messages import (
    FRAME,
    StoreReply,
    StoreRequest,
    frame,
    read_request,
)

_BACKLOG = 1024
"""Connections that may wait: all ranks of a pool come at once, with a thread or two each."""

Answer = Callable[[StoreRequest], Awaitable[StoreReply]]


class StoreServer:
    """Serves the ranks of this node.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    answer : callable
        Does what a rank asks.
    """

    def __init__(self, folder: Path, answer: Answer) -> None:
        self._path = store_socket(folder)
        self._answer = answer

    async def open(self) -> None:
        """Begin to serve.

        Raises
        ------
        OSError
            If the socket cannot be made.
        """
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        self._server = await asyncio.get_running_loop().create_unix_server(
            lambda: _Connection(self._answer), sock=listener, backlog=_BACKLOG
        )


class _Connection(asyncio.Protocol):
    """That of one thread of a rank, which asks nothing until it has its last answer."""

    def __init__(self, answer: Answer) -> None:
        self._ask = answer
        self._read = bytearray()
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        try:
            check_unix_peer(transport.get_extra_info("socket"))
        except PermissionError:  # root's processes included, as nothing of ours comes from there
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._read += data
        end = FRAME + int.from_bytes(self._read[:FRAME], "big")
        if len(self._read) >= max(end, FRAME):
            request = read_request(bytes(self._read[FRAME:end]))
            del self._read[:end]
            self._answering = asyncio.ensure_future(self._answer(request))

    async def _answer(self, request: StoreRequest) -> None:
        self._transport.write(frame(await self._ask(request)))

    def connection_lost(self, _: Exception | None) -> None:
        if self._answering:
            self._answering.cancel()
