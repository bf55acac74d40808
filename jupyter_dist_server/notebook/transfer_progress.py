"""Waiting for values that move to or from other nodes, and showing how far they are."""

from __future__ import annotations

import time
from collections.abc import Coroutine
from concurrent.futures import wait
from typing import Any, TypeVar

from IPython.core.getipython import get_ipython
from IPython.display import display

from ..client.pool_client import PoolClient
from ..client.values.push_and_pull import Mover
from ..common.units import format_bytes
from .loop_thread import LoopThread

T = TypeVar("T")

_UNSHOWN = 1.0
"""Seconds of a transfer of which nothing is shown."""
_EVERY = 0.25


def mover(client: PoolClient, loop: LoopThread) -> Mover:
    """Return what moves values to the pool and back, and shows how far they are."""
    transfer = _Transfer(client.nodes, loop)
    return Mover(client, transfer.run, transfer.note)


class _Transfer:
    """Shows one line for each value that takes longer than a second."""

    def __init__(self, nodes: dict[int, str], loop: LoopThread) -> None:
        self._nodes = nodes
        self._loop = loop
        self._moved: dict[int, tuple[int, int]] = {}
        """By rank, how many bytes have moved, and of how many."""

    def note(self, done: int, total: int, rank: int) -> None:
        """Take how far a value is; called in the loop's thread."""
        self._moved[rank] = done, total

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; an interrupt of the kernel cancels it."""
        self._moved = {}
        future = self._loop.submit(work)
        begun = time.monotonic()
        in_place = hasattr(get_ipython(), "kernel")  # a terminal would print each state anew
        handle: Any = None
        shown = ""
        try:
            while not wait([future], timeout=_EVERY).done:
                line = self._line(time.monotonic() - begun)
                if line in ("", shown) or time.monotonic() - begun < _UNSHOWN:
                    continue
                shown, text = line, {"text/plain": line}
                if handle is None:
                    handle = display(text, raw=True, display_id=True)
                elif in_place:
                    handle.update(text, raw=True)
            if handle:
                line = self._line(time.monotonic() - begun)
                handle.update({"text/plain": line}, raw=True)
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def _line(self, seconds: float) -> str:
        if not (moved := dict(self._moved)):
            return ""
        done, total = (sum(column) for column in zip(*moved.values(), strict=True))
        speed = format_bytes(round(done / seconds))
        nodes = list(dict.fromkeys(self._nodes[rank] for rank in sorted(moved)))
        where = f"node{'s' * (len(nodes) > 1)} {', '.join(nodes)}"
        return f"Moved {format_bytes(done)} of {format_bytes(total)} ({where}, {speed}/s)."
