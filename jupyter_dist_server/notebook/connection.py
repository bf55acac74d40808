"""What a notebook does with its connection to a pool, in the connection's event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from ..pools.client import PoolClient

_MEND = 2.0
"""Seconds within which a process group is made again, unless another notebook's cell runs."""


async def connected_client(folder: Path, who: dict[str, Any]) -> PoolClient:
    """Connect to a pool, and hold it as `who`."""
    client = PoolClient(folder)  # its sockets belong to the loop that makes them
    await client.connect()
    client.link.send("hold", who=who)
    return client


async def close_after(calls: Iterable[Future[Any]], client: PoolClient) -> None:
    """Disconnect once calls have ended, however they did."""
    await asyncio.gather(*map(asyncio.wrap_future, calls), return_exceptions=True)
    await client.close()


async def mended(client: PoolClient) -> bool:
    """Make the process group whole, if it is not; tell whether it is."""
    with contextlib.suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(client.mend(), _MEND)
    return False
