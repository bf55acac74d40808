"""A connection to a pool's agent: its snapshots in, commands out."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .folder import AGENT_SOCKET
from .peers import check_unix_peer
from .turns import Turn

_LOG = logging.getLogger(__name__)

Snapshot = dict[str, Any]


class AgentLink:
    """Follow one agent.

    Attributes
    ----------
    snapshot : dict or None
        The newest one; `None` until the agent has spoken.
    closed : asyncio.Event
        Set when the agent has gone.
    turn : Turn
        The right to run cells.
    """

    def __init__(self, on_snapshot: Callable[[Snapshot], None]) -> None:
        self.snapshot: Snapshot | None = None
        self.closed = asyncio.Event()
        self.first = asyncio.Event()
        self.turn = Turn(self.send)
        self._on_snapshot = on_snapshot
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def connect(self, folder: Path) -> None:
        """Connect to the agent's socket.

        Raises
        ------
        OSError
            If nobody listens there any more, or another user does.
        """
        reader, self._writer = await asyncio.open_unix_connection(
            str(folder / AGENT_SOCKET), limit=1 << 24
        )
        try:
            check_unix_peer(self._writer.get_extra_info("socket"))
        except PermissionError:
            self._writer.close()
            raise
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                said = json.loads(line)
                if "turn" in said:
                    self.turn.hear(said["turn"])
                    continue
                self.snapshot = said
                self.first.set()
                try:
                    self._on_snapshot(said)
                except Exception:  # a listener's mistake must not look like the agent's death
                    _LOG.exception("A listener of an agent failed")
        except ConnectionError:
            pass  # the agent was killed; `closed` says so
        finally:
            self.first.set()
            self.closed.set()
            self.turn.close()

    def send(self, do: str, **fields: Any) -> None:
        """Give a command, such as ``interrupt`` with `ranks`, or ``stop``."""
        if self._writer and not self.closed.is_set():
            self._writer.write(json.dumps({"do": do, **fields}).encode() + b"\n")

    async def close(self) -> None:
        """Hang up; the agent goes on."""
        if self._writer:
            self._writer.close()
        if self._reading:
            await asyncio.gather(self._reading, return_exceptions=True)
