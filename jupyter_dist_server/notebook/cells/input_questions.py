"""What ranks ask with ``input()``: asked in the notebook, one after the other."""

from __future__ import annotations

import getpass
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...common.protocol.jupyter_messages import Content

END_OF_INPUT = "\x04"
"""The answer with which Jupyter's front ends have `input()` raise an `EOFError`."""


def ask(rank: int, request: Content, is_wanted: Callable[[], bool]) -> str | None:
    """Return the user's answer, also Ctrl-D; `None` if it `is_wanted` no longer.

    It raises `KeyboardInterrupt` if the user presses Stop, or the question is withdrawn.
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
        except KeyboardInterrupt:  # from a signal that waited for its handler
            signal.signal(signal.SIGINT, previous)
            raise
