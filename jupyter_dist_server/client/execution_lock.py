"""A client's part of the execution lock; `agent.execution_lock_queue` says why there is one."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from ..common.patience import patience
from ..common.protocol.agents.agent_messages import (
    AcquireLock,
    LockGranted,
    LockHolderStopped,
    LockWanted,
    ReleaseLock,
)


class ExecutionLock:
    """The right to run cells on a pool; several cells of one client share it."""

    def __init__(self, ask: Callable[[AcquireLock | ReleaseLock], None]) -> None:
        self._ask = ask
        self._held = False
        self._closed = False
        self._wanted = False
        self._asked = False
        self._cells = 0
        self._stopped: tuple[int, float] | None = None
        """The stopped process that has the lock, and when the agent said so."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def is_held(self) -> bool:
        """Whether `acquire` need not ask."""
        return self._closed or (self._held and not self._wanted)

    @property
    def is_ours(self) -> bool:
        """Whether no other client runs a cell."""
        return self._held

    @property
    def stopped_holder(self) -> int | None:
        """The process that has the lock, which we wait for, if it is stopped."""
        pid, said = self._stopped or (None, 0.0)
        # The agent repeats it every two seconds.
        return pid if not self._held and time.monotonic() < said + patience.busy_answer else None

    async def acquire(self, unless: asyncio.Event) -> bool:
        """Wait until this client may run a cell, and return `True`: `release` must follow.

        If `unless` is set first, as the cell is no longer wanted, there is nothing to release.
        """
        if self.is_held:
            self._cells += 1
            return True
        if not self._asked:
            self._asked = True
            self._ask(AcquireLock())
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
                self.release()
        return may

    def release(self) -> None:
        """Note that a cell is over."""
        self._cells -= 1
        self._give_back_if_wanted()

    def hear(self, news: LockGranted | LockWanted | LockHolderStopped) -> None:
        """Note that the agent has granted us the lock, wants it back, or says why we wait."""
        if isinstance(news, LockHolderStopped):
            self._stopped = news.pid, time.monotonic()
        elif isinstance(news, LockWanted):
            self._wanted = True
        else:
            self._held, self._asked, self._wanted = True, False, False
            self._let_in()
        self._give_back_if_wanted()

    def close(self) -> None:
        """Let all cells in: the agent has gone, which they will notice."""
        self._closed = True
        self._let_in()

    def _let_in(self) -> None:
        # They are counted now, so that the lock is not given back before they have used it.
        while self._waiting:
            if not (granted := self._waiting.popleft()).done():
                self._cells += 1
                granted.set_result(None)

    def _give_back_if_wanted(self) -> None:
        if self._wanted and self._held and not self._cells and not self._closed:
            self._held = self._wanted = False
            self._ask(ReleaseLock())
