"""For how long the debugger has stopped ranks: limits on cells do not count that time."""

from __future__ import annotations

import time


class HaltClock:
    """Counts the seconds in which at least one rank is stopped."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since: float | None = None

    @property
    def is_running(self) -> bool:
        """Whether a rank is stopped."""
        return self._since is not None

    @property
    def seconds(self) -> float:
        """The sum until now."""
        since = self._since
        return self._before + (0.0 if since is None else time.monotonic() - since)

    def set(self, halted: bool) -> None:
        """Note whether a rank is stopped."""
        if halted and self._since is None:
            self._since = time.monotonic()
        elif not halted:
            self._before, self._since = self.seconds, None
