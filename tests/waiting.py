"""Waiting for what other processes do; nothing tells us of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from jupyter_dist_server.common.patience import patience

PATIENCE = patience.start
"""Seconds that a test waits for anything. It is only ever spent when a test fails, so it is
generous: the machine may be busy with other work."""
_SHARE = 10
"""How many times as long as a look takes we pause after it: others need the processor."""


def wait_for(condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
    """Return the first true value of `condition`, asked often."""
    deadline = time.monotonic() + timeout
    while True:
        begun = time.thread_time()
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout:g} s"
        threading.Event().wait(min(max(0.02, _SHARE * (time.thread_time() - begun)), 0.5))
