"""Whose turn it is: cells of different clients run in the same order on all ranks.

Two clients that sent their cells at will could reach the ranks in a different order on each, and
collectives would wait for each other for ever. So a client runs cells only while it has the turn,
which the agent hands out in the order in which it was asked for. A client keeps the turn, at no
cost, until another one asks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from .control_socket import Client

YOURS, WANTED = "yours", "wanted"
"""What the agent says of the turn: a client has it, or is to give it back after its cell."""


class Turns:
    """The agent's side.

    Parameters
    ----------
    tell : callable
        Says `YOURS` or `WANTED` to a client.
    """

    def __init__(self, tell: Callable[[Client, str], None]) -> None:
        self._tell = tell
        self._holder: Client | None = None
        self._waiting: deque[Client] = deque()

    def take(self, client: Client) -> None:
        """Queue a client; the holder too may ask for its next turn."""
        self._waiting.append(client)
        if self._holder is None:
            self._next()
        elif len(self._waiting) == 1:
            self._tell(self._holder, WANTED)

    def end(self, client: Client) -> None:
        """Take the turn back from a client that has it."""
        if client is self._holder:
            self._next()

    def remove(self, client: Client) -> None:
        """Forget a client that is gone."""
        self._waiting = deque(known for known in self._waiting if known is not client)
        self.end(client)

    def _next(self) -> None:
        self._holder = self._waiting.popleft() if self._waiting else None
        if self._holder:
            self._tell(self._holder, YOURS)
            if self._waiting:
                self._tell(self._holder, WANTED)


class Turn:
    """A client's side; several cells of one client share its turn.

    Parameters
    ----------
    ask : callable
        Sends ``take_turn`` or ``end_turn`` to the agent.
    """

    def __init__(self, ask: Callable[[str], None]) -> None:
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
            self._ask("take_turn")
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

    def hear(self, said: str) -> None:
        """Take note of what the agent says."""
        if said == WANTED:
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
            self._ask("end_turn")
