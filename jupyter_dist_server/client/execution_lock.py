"""A client's turn to run cells, which the agent gives; see `agent.execution_lock` for why."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ..common.protocol.agent import EndTurn, TakeTurn


class OwnTurn:
    """Several cells of one client share its turn.

    Parameters
    ----------
    ask : callable
        Sends a command to the agent.
    """

    def __init__(self, ask: Callable[[TakeTurn | EndTurn], None]) -> None:
        self._ask = ask
        self._mine = False
        self._closed = False
        self._wanted = False
        self._asked = False
        self._cells = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_mine(self) -> bool:
        """Whether `take` need not ask."""
        return self._closed or (self._mine and not self._wanted)

    async def take(self, unless: asyncio.Event) -> bool:
        """Wait until this client may run a cell; `end` must follow.

        Parameters
        ----------
        unless : asyncio.Event
            Set when the cell is not wanted any more.

        Returns
        -------
        bool
            Whether it may; if not, it has no turn to end.
        """
        if self.is_mine:
            self._cells += 1
            return True
        if not self._asked:
            self._asked = True
            self._ask(TakeTurn())
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(granted)
        cancelled = asyncio.ensure_future(unless.wait())
        may = False
        try:
            either: list[asyncio.Future[Any]] = [granted, cancelled]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            may = not unless.is_set()
        finally:
            cancelled.cancel()
            if not may and not granted.cancel():
                self.end()
        return may

    def end(self) -> None:
        """Note that a cell is over."""
        self._cells -= 1
        self._give_back_if_wanted()

    def hear(self, wanted: bool) -> None:
        """Note that the agent gives us the turn, or wants it back after the cell."""
        if wanted:
            self._wanted = True
        else:
            self._mine, self._asked, self._wanted = True, False, False
            self._let_in()
        self._give_back_if_wanted()

    def close(self) -> None:
        """Let everybody in: the agent has gone, and their cells will find out."""
        self._closed = True
        self._let_in()

    def _let_in(self) -> None:
        # They are counted now, so that the turn is not given back before they have used it.
        while self._waiting:
            if not (granted := self._waiting.popleft()).done():
                self._cells += 1
                granted.set_result(None)

    def _give_back_if_wanted(self) -> None:
        if self._wanted and self._mine and not self._cells and not self._closed:
            self._mine = self._wanted = False
            self._ask(EndTurn())
