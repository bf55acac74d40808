"""A connection to the debuggers of ranks, beside the one that runs cells, while it is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from ...common.protocol.jupyter_messages import Content, Message
from ...common.protocol.ranks.debug_messages import (
    DebugAttachReply,
    DebugAttachRequest,
    DebugDetachReply,
    DebugDetachRequest,
    DebugReply,
    DebugRequest,
)
from .rank_connection import RankConnection, read_reply

OnEvent = Callable[[int, Content], None]
"""Takes a rank, and an event of its debugger."""
_MAY_BE_EVENT = DebugAttachRequest.kind.replace("_request", "_reply")


class DebugConnection(RankConnection):
    """Requests to the debuggers of the ranks of one pool, and their events."""

    def __init__(self, folder: Path, on_event: OnEvent) -> None:
        super().__init__(folder, ("control",))
        self._on_event = on_event

    async def attach(self, ranks: Collection[int], seconds: float) -> dict[int, str]:
        """Switch debuggers on; return why that failed, by rank."""
        said = await self.request(DebugAttachRequest(), DebugAttachReply, ranks, timeout=seconds)
        failed = {rank: reply.failure for rank, reply in said.items() if reply.failure}
        silent = dict.fromkeys(ranks, f"It has not responded within {seconds:g} s.")
        return failed | {rank: why for rank, why in silent.items() if rank not in said}

    async def detach(self, ranks: Collection[int], seconds: float) -> None:
        """Switch debuggers off."""
        await self.request(DebugDetachRequest(), DebugDetachReply, ranks, timeout=seconds)

    async def debug(
        self, message: Content, ranks: Collection[int], seconds: float
    ) -> dict[int, Content]:
        """Send a request of the Debug Adapter Protocol; return the responses in time, by rank."""
        request = DebugRequest(message)
        said = await self.request(request, DebugReply, ranks, timeout=seconds)
        return {rank: reply.message for rank, reply in said.items()}

    def on_message(self, rank: int, channel: str, message: Message) -> None:
        """Take a reply or an event."""
        if message["header"]["msg_type"] == _MAY_BE_EVENT:
            reply = read_reply(rank, message, DebugAttachReply)
            if reply and reply.event:
                self._on_event(rank, reply.event)
                return
        super().on_message(rank, channel, message)
