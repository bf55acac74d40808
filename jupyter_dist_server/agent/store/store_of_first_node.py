"""The pool's store for ranks on other nodes: their agent passes questions on to the first one's."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

from ...common.protocol.agents.agent_messages import StoreAnswer, StoreQuestion
from ...common.protocol.store_messages import StoreReply, StoreRequest


class StoreOfFirstNode:
    """Asks the first node's agent, by the connection that the engine has made to it."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[StoreReply]] = {}
        self._tell: Callable[[StoreQuestion], None] | None = None

    def open(self, tell: Callable[[StoreQuestion], None]) -> None:
        """Begin to ask; `tell` sends a question."""
        self._tell = tell

    async def ask(self, request: StoreRequest) -> StoreReply:
        """Return the first node's answer; the rank that waits for it has a limit of its own."""
        if self._tell is None:
            return StoreReply(failure="The first node's agent is not connected.")
        number = next(self._numbers)
        self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._tell(StoreQuestion(number, request))
            return await self._asked[number]
        finally:
            del self._asked[number]

    def hear(self, answer: StoreAnswer) -> None:
        """Take an answer; who asked may have gone."""
        if (asked := self._asked.get(answer.number)) and not asked.done():
            asked.set_result(answer.reply)
