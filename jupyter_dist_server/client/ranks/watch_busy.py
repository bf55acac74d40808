"""Which ranks are busy, as the server sees it. The server gets no outputs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from ...common.protocol.jupyter_messages import Message
from ...common.protocol.ranks.rank_messages import CellRequest, RankStatus
from .rank_connection import RankConnection
from .rank_sockets import RankSockets, status_topics

_CELLS = ("execute_request", CellRequest.kind)
"""What runs a cell, from any Jupyter client or from one of ours."""
_PATIENCE = 5.0
"""Seconds within which every rank confirms our subscription, and answers."""

OnState = Callable[[int, str, int | None, str | None, str], None]


class Watcher(RankSockets):
    """Follows when cells begin and end on the ranks of one pool.

    Parameters
    ----------
    folder : Path
        The pool's private folder.
    on_state : callable
        Called with ``(rank, "busy" or "idle", cell, cell_id, msg_id)``: the notebook's number and
        id of the cell, `None` if it has none, and the id of the request that runs it.
    """

    def __init__(self, folder: Path, on_state: OnState) -> None:
        super().__init__(folder, ["iopub"], status_topics)
        self._on_state = on_state
        self.open()

    def on_message(self, rank: int, channel: str, message: Message) -> None:
        """Take a status; control requests have one too, but they are not cells."""
        parent = message["parent_header"]
        if parent.get("msg_type") in _CELLS:
            state, cell = message["content"]["execution_state"], message["metadata"]
            self._on_state(rank, state, cell.get("cell"), cell.get("cell_id"), parent["msg_id"])

    async def ready(self, ranks: Iterable[int], patience: float = _PATIENCE) -> None:
        """Wait until no status of `ranks` can be missed, unless one is silent, or we are closed."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.subscribed(ranks), patience)


async def rank_states(folder: Path, ranks: Iterable[int]) -> dict[int, RankStatus]:
    """Ask which of `ranks` are busy now, and since when: a watcher is told of changes only.

    Those that do not answer are left out: one may be stopped, or in C code that holds the GIL.
    """
    try:
        async with RankConnection(folder) as connection:
            return await connection.status(_PATIENCE, ranks)
    except FileNotFoundError:  # the pool has ended this very moment
        return {}
