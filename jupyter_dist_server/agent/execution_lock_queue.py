"""The queue for the execution lock: cells of different clients run in the same order on all ranks.

If two clients sent cells whenever they liked, the cells could reach the ranks in different orders,
and collectives would wait for each other for ever. So a client runs cells only while it has the
lock. The agent grants it in the order of requests. A client keeps the lock, at no cost, until
another one requests it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import psutil

from ..common.peers import unix_peer_pid
from ..common.processes.process_ref import ProcessRef, is_stopped
from ..common.protocol.agents import agent_messages as messages
from .control_socket import Client


class LockQueue:
    """The client that has the execution lock, and those that wait for it."""

    def __init__(self, tell: Callable[[Client, messages.News], None]) -> None:
        self._tell = tell
        self._owner: Client | None = None
        self._waiting: deque[Client] = deque()
        self._look: asyncio.TimerHandle | None = None

    def acquire(self, client: Client) -> None:
        """Queue a client; the one that has the lock may request it again."""
        self._waiting.append(client)
        if self._owner is None:
            self._next()
        else:
            self._look_later()
            if len(self._waiting) == 1:
                self._tell(self._owner, messages.LockWanted())

    def release(self, client: Client) -> None:
        """Take the lock back from a client, if it has it."""
        if client is self._owner:
            self._next()

    def note_late(self, ranks: list[int]) -> None:
        """Tell the client that has the lock which ranks did not stop."""
        if self._owner:
            self._tell(self._owner, messages.LateRanks(ranks))

    def remove(self, client: Client) -> None:
        """Forget a client that has ended."""
        self._waiting = deque(other for other in self._waiting if other is not client)
        self.release(client)

    def _next(self) -> None:
        self._owner = self._waiting.popleft() if self._waiting else None
        if self._owner:
            self._tell(self._owner, messages.LockGranted())
            if self._waiting:
                self._tell(self._owner, messages.LockWanted())

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(2.0, self._look_at_owner)

    def _look_at_owner(self) -> None:
        """Tell waiting clients if the client that has the lock is stopped."""
        self._look = None
        if not self._owner or not self._waiting:
            return
        self._look_later()
        if pid := _stopped_process(self._owner):
            for client in self._waiting:
                self._tell(client, messages.LockHolderStopped(pid))


def _stopped_process(client: Client) -> int | None:
    try:
        pid = unix_peer_pid(client.get_extra_info("socket"))
        return pid if is_stopped(ProcessRef.of(pid)) else None
    except (OSError, psutil.NoSuchProcess):  # its connection is about to be closed
        return None
