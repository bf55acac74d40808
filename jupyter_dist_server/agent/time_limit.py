"""The time limit of a pool, and what others are told of its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ..common.protocol.agents.agent_messages import PoolTime
from ..common.protocol.failure_reason import Reason
from ..common.units import write_limit
from .control_socket import Client


class TimeLimit:
    """Counts a pool's time by the monotonic clock: steps of the clock and sleep do not count.

    `state` is what clients are told. Calls `changed` when it has changed, and `over` at the limit.
    """

    def __init__(
        self,
        seconds: float | None,
        changed: Callable[[], None],
        over: Callable[[], object],
    ) -> None:
        self.state = PoolTime(seconds)
        self._changed = changed
        self._over = over
        self._timer: asyncio.TimerHandle | None = None
        self._begun = 0.0
        self._watcher: Client | None = None
        """The client that says since when the pool is idle."""

    def open(self) -> None:
        """Begin to count; called in the event loop."""
        self._begun = asyncio.get_running_loop().time()
        self._set_timer()
        self._changed()

    def extend(self, seconds: float) -> None:
        """Add to the limit, if there is one."""
        self.state.extended = time.time()
        if self.state.limit is not None:
            self.state.limit += seconds
            self._set_timer()
        self._changed()

    def note_idle(self, client: Client, since: float | None) -> None:
        """Note since when the pool is idle, as a client says; it is believed until it ends."""
        self._watcher, self.state.idle_since = client, since
        self._changed()

    def remove(self, client: Client) -> None:
        """Forget what a client that has ended said."""
        if client is self._watcher:
            self.note_idle(client, None)

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self.state.limit is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._begun + self.state.limit, self._end)
            self.state.ends_by = time.time() + self._begun + self.state.limit - loop.time()

    def _end(self) -> None:
        assert self.state.limit is not None
        self.state.over = Reason(
            "time_limit",
            f"The pool reached its time limit of {write_limit(self.state.limit)}, "
            "so it was stopped.",
            "Start a new one with %dist_init and a longer --time.",
        )
        self._over()
