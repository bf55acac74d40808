"""Threads that a cell starts: what they print belongs to that cell, also when it has ended."""

from __future__ import annotations

import threading
from contextvars import copy_context
from functools import partial


def let_threads_inherit_context() -> None:
    """Give each new thread the context of its maker: it holds the cell that output belongs to.

    From Python 3.14 on, an interpreter that is started with ``-X thread_inherit_context=1`` does
    so itself. No older one has anything for it but this.
    """
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_in_context  # type: ignore[method-assign,assignment]
