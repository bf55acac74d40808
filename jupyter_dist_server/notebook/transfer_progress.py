"""Shows the progress of values that move to or from ranks, and why they wait."""

from __future__ import annotations

import math
import time
from collections.abc import Coroutine
from concurrent.futures import wait
from functools import partial
from typing import Any, TypeVar

from IPython.core.getipython import get_ipython
from IPython.display import display

from ..client.pool_client import PoolClient
from ..client.values.push_and_pull import Mover
from ..common.units import format_bytes
from ..verdicts.explain_hang import explain
from ..verdicts.verdict import Verdict
from .cells import cell_wait
from .cells.cell_wait import evidence_on, explain_wait
from .loop_thread import LoopThread
from .output.cell_outcome import CellInterrupted

T = TypeVar("T")

_ON_ALL = (
    "Only the ranks that a value is fetched from evaluate its expression. If that waits for other "
    "ranks, run it in a cell on all ranks and fetch the result, or use --ranks all."
)


def mover(client: PoolClient, loop: LoopThread) -> Mover:
    """Return what moves values to the pool and back, and shows their progress."""
    transfer = _Transfer(client, loop)
    return Mover(client, transfer.run, transfer.note)


class _Transfer:
    """Shows one line for each value that takes longer than a second."""

    def __init__(self, client: PoolClient, loop: LoopThread) -> None:
        self._client = client
        self._loop = loop
        self._moved: dict[int, tuple[int, int]] = {}
        """By rank, how many bytes have moved, of how many."""

    def note(self, done: int, total: int, rank: int) -> None:
        """Note how far a value is; called in the loop's thread."""
        self._moved[rank] = done, total

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; an interrupt of the kernel cancels it.

        If a rank waits for others in a collective then, the process group is re-created.
        """
        self._moved = {}
        future = self._loop.submit(work)
        begun = time.monotonic()
        look_at = cell_wait.LIMIT or math.inf
        in_place = hasattr(get_ipython(), "kernel")  # a terminal would print each state anew
        handle: Any = None
        shown = ""
        try:
            while not wait([future], timeout=0.25).done:
                seconds = time.monotonic() - begun
                if seconds > look_at and not self._moved:
                    verdict = explain_wait(self._client, self._loop)
                    told = verdict is not None and verdict.concerns_all
                    look_at = math.inf if told else time.monotonic() - begun + 2.0
                    if verdict and told:
                        display({"text/plain": f"{verdict.sentence} {_ON_ALL}"}, raw=True)
                line = self._line(seconds)
                if line in ("", shown) or seconds < 1.0:
                    continue
                shown, text = line, {"text/plain": line}
                if handle is None:
                    handle = display(text, raw=True, display_id=True)
                elif in_place:
                    handle.update(text, raw=True)
            if handle:
                handle.update({"text/plain": self._line(time.monotonic() - begun)}, raw=True)
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            why = "Interrupted: the transfer was cancelled."
            if verdict := self._loop.run(self._free()):
                is_made = self._loop.run(self._client.repair_group())
                later = "will be re-created when all ranks are running and idle"
                when = "was re-created" if is_made else later
                group = f"The process group {when}; create DDP models and groups again."
                why = f"Interrupted. {verdict.sentence} {_ON_ALL} {group}"
            raise CellInterrupted(why, []) from None

    async def _free(self) -> Verdict | None:
        """End a rank's wait for others, if it runs no cell; return why it waited."""
        verdict, _ = await explain(partial(evidence_on, self._client))
        said = await self._client.status()
        if not (verdict and verdict.op) or any(one.state == "busy" for one in said.values()):
            return None
        self._client.group.break_up()
        return verdict

    def _line(self, seconds: float) -> str:
        if not (moved := dict(self._moved)):
            return ""
        done, total = (sum(column) for column in zip(*moved.values(), strict=True))
        speed = format_bytes(round(done / seconds))
        nodes = list(dict.fromkeys(self._client.nodes[rank] for rank in sorted(moved)))
        where = f"node{'s' * (len(nodes) > 1)} {', '.join(nodes)}"
        return f"Moved {format_bytes(done)} of {format_bytes(total)} ({where}, {speed}/s)."
