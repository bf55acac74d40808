"""SIGINT outside of cells changes nothing in a rank; programs that it starts still hear it."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
from typing import Any


def ignore_sigint() -> Any:
    """Ignore SIGINT; return the handler that it had."""
    return on_sigint(_ignore)


def on_sigint(handler: Any) -> Any:
    """Have a function called; return the handler that SIGINT had.

    `signal.signal` also makes enums of numbers, which takes 10 microseconds, five times a cell.
    """
    return _signal.signal(_signal.SIGINT, handler)


def _ignore(number: int, frame: Any) -> None:
    """Ignore a signal; unlike `SIG_IGN`, programs that the rank starts do not inherit this."""
