"""The first node's agent, as that on another node sees it: it obeys, and must be heard."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...common.pool_folder import write_ahead

_LOOK = 1.0
"""Seconds between two looks at when it was last heard."""
PATIENCE = 10.0
"""Seconds without a word after which this node is cut off: its ranks are used no more, and end."""


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
    """Ends this agent once the first node's is silent, or has gone.

    Parameters
    ----------
    gone : callable
        Ends it.
    """

    def __init__(self, gone: Callable[[], object]) -> None:
        self._gone = gone
        self._heard = time.monotonic()

    def note(self) -> None:
        """Note that it was heard."""
        self._heard = time.monotonic()

    def keep_ahead(self, folder: Path, ahead: float) -> None:
        """Write down, for the ranks here, how far this node's clock is ahead of the first one's."""
        with contextlib.suppress(OSError):  # the disk is full: the last value stays
            write_ahead(folder, ahead)

    async def watch(self, serving: asyncio.Task[None]) -> None:
        """Wait until it has hung up, or was not heard for too long."""
        while not serving.done() and time.monotonic() - self._heard < PATIENCE:
            # That it failed is logged by its owner; its end is an end like any other.
            await asyncio.wait([serving], timeout=_LOOK)
        self._gone()
