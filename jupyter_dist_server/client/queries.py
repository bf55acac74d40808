"""Requests that each rank answers by one reply."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from .channels import Message


class Queries:
    """Those that one client waits for."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], asyncio.Future[Message]] = {}

    async def ask(
        self, request: str, ranks: Iterable[int], send: Callable[[], None], timeout: float | None
    ) -> dict[int, Message]:
        """Send a request, named by its message's id, and return the replies that come in time."""
        loop = asyncio.get_running_loop()
        replies = {rank: loop.create_future() for rank in ranks}
        self._waiting |= {(request, rank): reply for rank, reply in replies.items()}
        try:
            send()
            if replies:
                await asyncio.wait(replies.values(), timeout=timeout)
        finally:
            for rank in replies:
                self._waiting.pop((request, rank), None)
        return {
            rank: reply.result()
            for rank, reply in replies.items()
            if reply.done() and not reply.cancelled()
        }

    def answer(self, request: str, rank: int, message: Message) -> None:
        """Take a rank's reply; one that nobody waits for is dropped."""
        if reply := self._waiting.pop((request, rank), None):
            reply.set_result(message)

    def give_up(self, rank: int | None = None) -> None:
        """Expect nothing any more from one rank, or from all."""
        for (request, asked), reply in list(self._waiting.items()):
            if rank in (None, asked):
                del self._waiting[request, asked]
                reply.cancel()
