"""The execution lock: cells of different clients run in the same order on all ranks.

Two clients that sent their cells at will could reach the ranks in a different order on each, and
collectives would wait for each other for ever. So a client runs cells only while it has the turn,
which the agent hands out in the order in which it was asked for. A client keeps the turn, at no
cost, until another one asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .control_socket import Client


class Turns:
    """The agent's side.

    Parameters
    ----------
    tell : callable
        Says to a client that it has the turn or, if true, that it is to give it back.
    """

    def __init__(self, tell: Callable[[Client, bool], None]) -> None:
        self._tell = tell
        self._holder: Client | None = None
        self._waiting: deque[Client] = deque()

    def take(self, client: Client) -> None:
        """Queue a client; the holder too may ask for its next turn."""
        self._waiting.append(client)
        if self._holder is None:
            self._next()
        elif len(self._waiting) == 1:
            self._tell(self._holder, True)

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
            self._tell(self._holder, False)
            if self._waiting:
                self._tell(self._holder, True)
