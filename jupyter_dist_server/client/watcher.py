"""Which ranks are busy, as the server sees it: their status messages and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import zmq
import zmq.asyncio
from jupyter_client.session import Session

from ..common.folder import endpoint, read_config
from ..common.tasks import Tasks
from .greeting import wait_for_greeting
from .status_channel import StatusChannel

_CELLS = ("execute_request", "dist_cell_request")
"""What runs a cell, from any Jupyter client or from one of ours."""
_PATIENCE = 5.0
"""Seconds within which every rank greets us, and answers."""

OnState = Callable[[int, str, int | None], None]


class Watcher:
    """Follow the ``status`` topics of a pool's ranks; outputs never reach this process.

    Parameters
    ----------
    folder : str
        The pool's private folder.
    on_state : callable
        Called with ``(rank, "busy" or "idle", cell)`` when a cell begins or ends; `cell` is the
        notebook's number for it, `None` if that has none.
    """

    def __init__(self, folder: str, on_state: OnState) -> None:
        config = read_config(Path(folder))
        self._session = Session(key=config["key"].encode())
        self._context = zmq.asyncio.Context()
        self._on_state = on_state
        self._greeted = [asyncio.Event() for _ in range(config["world_size"])]
        self._tasks = Tasks()
        self._sockets: list[zmq.asyncio.Socket] = []
        for rank in range(config["world_size"]):
            socket = self._context.socket(zmq.SUB)
            socket.linger = 0
            socket.subscribe(f"kernel.rank-{rank}.status")
            socket.connect(endpoint(Path(folder), rank, "iopub"))
            self._sockets.append(socket)
            self._tasks.add(self._follow(rank, socket))

    async def _follow(self, rank: int, socket: zmq.asyncio.Socket) -> None:
        while True:
            _, parts = self._session.feed_identities(await socket.recv_multipart())
            message = self._session.deserialize(parts)
            if message["msg_type"] == "iopub_welcome":
                self._greeted[rank].set()
                continue
            # Control requests are busy and idle too, but they are not cells.
            if message["parent_header"].get("msg_type") in _CELLS:
                state, cell = message["content"]["execution_state"], message["metadata"].get("cell")
                self._on_state(rank, state, cell)

    async def ready(self, ranks: Iterable[int]) -> None:
        """Wait until no status of `ranks` can be missed, unless one is silent, or we are closed."""
        greetings = (wait_for_greeting(self._greeted[r], self._sockets[r]) for r in ranks)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(*greetings), _PATIENCE)

    async def close(self) -> None:
        """Stop following."""
        for greeted in self._greeted:
            greeted.set()
        await self._tasks.cancel()
        self._context.destroy(linger=0)


async def rank_states(folder: Path, ranks: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Ask which of `ranks` are busy now, and since when: a watcher is told of changes only.

    Returns
    -------
    dict
        ``{state, cell, since}`` by rank, without those that do not answer: one may be stopped, or
        in C code that holds the GIL.
    """
    try:
        channel = StatusChannel(folder)
    except FileNotFoundError:  # the pool has ended this very moment
        return {}
    try:
        answers = await channel.ask(_PATIENCE, ranks)
    finally:
        await channel.close()
    wanted = ("state", "cell", "since")
    return {
        rank: {name: said[name] for name in wanted} for rank, said in enumerate(answers) if said
    }
