"""The line that follows the start of a pool."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from IPython.display import display

from ....common.errors import DistError
from ....common.protocol.pool_record import PoolRecord
from .pool_status import describe_start


def with_progress(shell: Any, work: Callable[[Callable[[PoolRecord], None]], PoolRecord]) -> None:
    """Show one line that follows the start of a pool.

    Parameters
    ----------
    shell : InteractiveShell
        The notebook's.
    work : callable
        Starts the pool, and calls what it is given with the record at each change.
    """
    handle: Any = None
    begun = time.monotonic()
    in_place = hasattr(shell, "kernel")  # a terminal would print each state anew
    why = None
    is_running = False

    def show(record: PoolRecord) -> None:
        nonlocal handle, why, is_running
        is_running = record.state == "RUNNING"
        before, why = why, record.progress.reason or None
        if not in_place and record.state != "RUNNING" and why in (before, None):
            return
        line = {"text/plain": describe_start(record, time.monotonic() - begun)}
        if handle is None:
            handle = display(line, raw=True, display_id=True)
        else:
            handle.update(line, raw=True)

    try:
        work(show)
    except DistError:
        if handle and not is_running:
            handle.update({"text/plain": "The ranks were not started."}, raw=True)
        raise
