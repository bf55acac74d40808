"""Which ranks are busy, without their outputs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from ...common.background_tasks import within
from ...common.patience import patience
from ...common.protocol.jupyter_messages import Message
from ...common.protocol.ranks.rank_messages import CellRequest, RankStatus
from .rank_connection import RankConnection
from .rank_sockets import RankSockets, status_topics

_CELLS = ("execute_request", CellRequest.kind)
"""What runs a cell, from any Jupyter client or from one of ours."""

OnState = Callable[[int, str, int | None, str | None, str], None]
"""Takes a rank, ``busy`` or ``idle``, the number and id of its cell, and that of the request."""


class Watcher(RankSockets):
    """Follows when cells begin and end on the ranks of one pool."""

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

    async def ready(self, ranks: Iterable[int], seconds: float | None = None) -> None:
        """Wait until no status of `ranks` can be missed, unless one is silent, or it is closed."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(self.subscribed(ranks), seconds or patience.busy_answer)


async def rank_states(folder: Path, ranks: Iterable[int]) -> dict[int, RankStatus]:
    """Ask which of `ranks` are busy now, and since when; those that do not answer are left out."""
    try:
        async with RankConnection(folder) as connection:
            return await connection.status(patience.busy_answer, ranks)
    except FileNotFoundError:  # the pool has ended this very moment
        return {}
