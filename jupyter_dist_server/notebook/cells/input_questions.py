"""What ranks ask with ``input()``: asked in the notebook, one after the other."""

from __future__ import annotations

import getpass
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...common.protocol.jupyter_messages import Content

END_OF_INPUT = "\x04"
"""The answer with which Jupyter's front ends have `input()` raise an `EOFError`."""


class Questions:
    """Those that were not asked yet."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, int, Content]] = deque()
        """When it may be asked, by whom, and what."""

    @property
    def due(self) -> float | None:
        """When the next one may be asked."""
        return self._waiting[0][0] if self._waiting else None

    def add(self, rank: int, request: Content, due: float) -> None:
        """Take what a rank asks."""
        self._waiting.append((due, rank, request))

    def take(self, now: float) -> tuple[int, Content] | None:
        """Return a rank and what it asks, if there is one to be asked now."""
        if self._waiting and now >= self._waiting[0][0]:
            return self._waiting.popleft()[1:]
        return None


def ask(rank: int, request: Content, is_wanted: Callable[[], bool]) -> str | None:
    """Return what the user answers, Ctrl-D too; `None` if that `is_wanted` no longer.

    Raises
    ------
    KeyboardInterrupt
        If the user presses Stop, or the question is withdrawn.
    """
    prompt = f"[{rank}] {request['prompt']}"
    with on_sigint(signal.default_int_handler):
        if not is_wanted():  # here: a signal that came before had another handler
            return None
        try:
            return getpass.getpass(prompt) if request["password"] else input(prompt)
        except EOFError:
            return END_OF_INPUT


def withdraw(thread: threading.Thread) -> None:
    """End a thread's wait for the user's answer; a no-op outside the main thread."""
    if thread is threading.main_thread() and thread.ident:
        signal.pthread_kill(thread.ident, signal.SIGINT)


@contextmanager
def on_sigint(handler: Callable[..., Any]) -> Iterator[None]:
    """Handle the kernel's interrupt; a no-op outside the main thread, where none arrives."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        try:
            signal.signal(signal.SIGINT, previous)
        except KeyboardInterrupt:  # of a signal that waited for its handler
            signal.signal(signal.SIGINT, previous)
            raise
