"""The store of a pool's process group, with the semantics of torch's ``TCPStore``.

The ranks of a node ask their agent, on a Unix socket in the private folder.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path

from ..common.background_tasks import within
from ..common.peers import check_unix_peer
from ..common.pool_folder import store_socket
from ..common.protocol.store_messages import FRAME, StoreReply, StoreRequest, frame, read_request

_BACKLOG = 1024
"""Connections that may wait: all ranks connect at once, with a thread or two each."""

Answer = Callable[[StoreRequest], Awaitable[StoreReply]]


class KeyValues:
    """The values, and the ranks that wait for a key."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._awaited: dict[str, asyncio.Event] = {}

    async def answer(self, request: StoreRequest) -> StoreReply:
        """Answer a rank's request; `get` and `wait` last until their keys are there."""
        keys, values = request.keys, request.values
        if request.do in ("get", "wait"):
            if missing := await self._missing_after(keys, request.seconds):
                waited = f"wait timeout after {request.seconds * 1000:.0f}ms"
                return StoreReply(failure=f"{waited}, keys: {', '.join(missing)}")
            return StoreReply([self._values[key] for key in keys] if request.do == "get" else [])
        if request.do == "check":
            return StoreReply(number=int(all(key in self._values for key in keys)))
        if request.do == "delete":
            return StoreReply(number=sum(self._values.pop(key, None) is not None for key in keys))
        if request.do == "list":
            return StoreReply(number=len(self._values), keys=[*self._values])
        if request.do == "add":
            total = int(self._values.get(keys[0], b"0")) + request.number
            self._set(keys[0], str(total).encode())
            return StoreReply(number=total)
        if request.do == "compare_set":
            return StoreReply([self._compare_set(keys[0], values)])
        for key, value in zip(keys, values, strict=True):
            self._set(key, self._values.get(key, b"") + value if request.do == "append" else value)
        return StoreReply()

    def _compare_set(self, key: str, values: Sequence[bytes]) -> bytes:
        expected, desired = values
        if self._values.get(key, b"") == expected:
            self._set(key, desired)
        # torch's store answers what was expected if there is nothing else.
        return self._values.get(key, expected)

    def _set(self, key: str, value: bytes) -> None:
        self._values[key] = value
        if awaited := self._awaited.pop(key, None):
            awaited.set()

    async def _missing_after(self, keys: Collection[str], seconds: float) -> list[str]:
        """Wait for keys; return those that did not come."""
        try:
            await within(self._wait(keys), seconds)
        except asyncio.TimeoutError:
            return [key for key in keys if key not in self._values]
        return []

    async def _wait(self, keys: Collection[str]) -> None:
        while missing := next((key for key in keys if key not in self._values), None):
            await self._awaited.setdefault(missing, asyncio.Event()).wait()


async def serve_store(folder: Path, answer: Answer) -> asyncio.Server:
    """Begin to answer the ranks of this node; `folder` is the pool's."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(store_socket(folder)))
    return await asyncio.get_running_loop().create_unix_server(
        lambda: _Connection(answer), sock=listener, backlog=_BACKLOG
    )


class _Connection(asyncio.Protocol):
    """The connection of one thread of a rank, which sends one request at a time."""

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
