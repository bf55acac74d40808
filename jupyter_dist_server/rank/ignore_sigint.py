"""SIGINT outside of cells changes nothing in a rank; programs that it starts still hear it."""

from __future__ import annotations

import signal
from typing import Any


def ignore_sigint() -> Any:
    """Ignore SIGINT; return the handler that it had."""
    return signal.signal(signal.SIGINT, _ignore)


def _ignore(number: int, frame: Any) -> None:
    """Ignore a signal; unlike `SIG_IGN`, programs that the rank starts do not inherit this."""
