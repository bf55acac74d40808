"""The first node's agent, as the agent on another node sees it: it orders, and must be heard."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...common.patience import patience
from ...common.pool_folder import write_ahead
from ...common.protocol.agents.agent_messages import StoreAnswer, StoreQuestion
from ...common.protocol.store_messages import StoreReply, StoreRequest


async def stream_of(source: int, target: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a stream that reads one descriptor and writes another, both pipes or sockets."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    protocol = asyncio.StreamReaderProtocol(reader)
    await loop.connect_read_pipe(lambda: protocol, os.fdopen(source, "rb", 0))
    transport: Any
    transport, flow = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()),
        os.fdopen(target, "wb", 0),
    )
    return reader, asyncio.StreamWriter(transport, flow, None, loop)


class FirstNode:
    """Calls `gone` once the first node's agent is silent, or has ended; asks it for the store."""

    def __init__(self, gone: Callable[[], object]) -> None:
        self._gone = gone
        self._heard = time.monotonic()
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[StoreReply]] = {}

    def open(self, tell: Callable[[StoreQuestion], None]) -> None:
        """Begin to ask for the store; `tell` sends a question."""
        self._tell = tell

    def note(self) -> None:
        """Note that it was heard."""
        self._heard = time.monotonic()

    def keep_ahead(self, folder: Path, ahead: float) -> None:
        """Write down, for the ranks here, how far this node's clock is ahead of the first one's."""
        with contextlib.suppress(OSError):  # the disk is full: the last value stays
            write_ahead(folder, ahead)

    async def watch(self, serving: asyncio.Task[None]) -> None:
        """Wait until it has hung up, or was not heard for too long."""
        while not serving.done() and time.monotonic() - self._heard < patience.node:
            # That it failed is logged by its owner; its end is an end like any other.
            await asyncio.wait([serving], timeout=1.0)
        self._gone()

    async def ask_store(self, request: StoreRequest) -> StoreReply:
        """Ask the store for a rank of this node; the rank itself limits the wait."""
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._tell(StoreQuestion(number, request))
            return await self._asked[number]
        finally:
            del self._asked[number]

    def hear_store(self, answer: StoreAnswer) -> None:
        """Pass on an answer of the store; the rank that asked may be gone."""
        if (asked := self._asked.get(answer.number)) and not asked.done():
            asked.set_result(answer.reply)
