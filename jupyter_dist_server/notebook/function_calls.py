"""A function call on ranks: a future that shows the output of the ranks."""

from __future__ import annotations

import contextlib
import contextvars
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

from IPython.core.getipython import get_ipython

from ..client.cell_execution import Execution, Reply
from ..client.pool_client import PoolClient
from ..client.values.push_and_pull import Mover
from ..common.processes.process_ref import RESTARTED, STOPPED
from ..common.protocol.jupyter_messages import Content
from ..common.rank_specs import format_ranks
from .cells.cell_events import LOOKED
from .cells.wait_watch import WaitWatch
from .loop_thread import LoopThread
from .output.cell_outcome import CellFailed, as_shown
from .output.merged.merge_outputs import Merger
from .output.publish import publish

_Event = tuple[int, str, Content]


def call_code(name: str) -> str:
    """Return the code of a cell that calls a function which was sent."""
    return f"get_ipython().kernel.dist_call({name!r})"


class Call(Future[list[Any]]):
    """What the ranks will have returned, in their order.

    `result` raises `CellFailed` if the function failed on a rank. `cancel` interrupts the ranks, as
    does an interrupt of the notebook while it waits in `result`.

    Parameters
    ----------
    client : PoolClient
        Connected, and living in `loop`.
    loop : LoopThread
        Where the client lives.
    mover : Mover
        Fetches the results.
    name : str
        The function's name on the ranks, where it has been sent already.
    ranks : list of int
        Where it is called.
    """

    def __init__(
        self, client: PoolClient, loop: LoopThread, mover: Mover, name: str, ranks: list[int]
    ) -> None:
        super().__init__()
        self._client, self._loop, self._mover = client, loop, mover
        self._name, self._ranks = name, ranks
        self._execution: Execution | None = None
        self._events: queue.SimpleQueue[_Event | None] = queue.SimpleQueue()
        why = f"{name}-why" if hasattr(get_ipython(), "kernel") else None
        self._watch = WaitWatch(client, loop, why, lambda: self._events.put((-1, LOOKED, {})))
        # Begun before we return: the notebook's next cell then comes after it.
        self._replies = loop.submit(
            client.execute(
                call_code(name),
                ranks,
                lambda *event: self._events.put(event),
                started=self._on_started,
            )
        )
        self._replies.add_done_callback(lambda _: self._events.put(None))
        # In the context of the calling cell, to which what the ranks print belongs.
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._follow,), daemon=True).start()

    def running(self) -> bool:
        """Whether it is on its way."""
        return not self.done()

    def cancel(self) -> bool:
        """Interrupt the ranks; `False` if it was too late for that."""
        if self.done() or not super().cancel():
            return self.cancelled()
        self.set_running_or_notify_cancel()
        if self._execution:
            self._loop.call(self._client.stop, self._execution)
        return True

    def result(self, timeout: float | None = None) -> list[Any]:
        """Wait for what the ranks return; an interrupt meanwhile interrupts them."""
        try:
            return super().result(timeout)
        except KeyboardInterrupt:
            self.cancel()
            raise

    def _on_started(self, execution: Execution) -> None:
        self._execution = self._watch.execution = execution
        if self.cancelled():
            self._client.stop(execution)

    def _follow(self) -> None:
        try:
            self._show()
            replies = self._replies.result()
            if failed := [reply for reply in replies.values() if reply.status != "ok"]:
                raise _failure(failed)
            values = self._mover.fetch_result(self._name, self._ranks)
            self._end(self.set_result, [values[rank] for rank in self._ranks])
        except BaseException as error:
            self._end(self.set_exception, error)
        finally:
            self._mover.forget(self._name, self._ranks)

    def _end(self, how: Callable[[Any], None], what: Any) -> None:
        with contextlib.suppress(InvalidStateError):  # it was cancelled meanwhile
            how(what)

    def _show(self) -> None:
        merger = Merger(self._ranks, self._client.world_size, self._name)
        event: _Event | None = None
        while True:
            now = time.monotonic()
            publish(merger.take(now))
            self._watch.look(now)
            wake = min((t for t in (merger.next_time(now), self._watch.due) if t), default=None)
            try:
                event = self._events.get(timeout=None if wake is None else max(0.0, wake - now))
            except queue.Empty:
                continue
            if event is None:
                break
            if event[1] == LOOKED:
                publish(self._watch.take())
                continue
            rank, kind, content = event[0], *as_shown(*event[1:])
            if kind == "finished":
                merger.finish(rank, now)
            elif kind != "error":  # it comes with the reply
                merger.feed(rank, kind, content, now)
        publish(merger.take(time.monotonic(), last=True))
        publish(self._watch.end())


def _failure(failed: Sequence[Reply]) -> CellFailed:
    causes: dict[str, list[int]] = {}
    for reply in failed:
        what = "{ename}: {evalue}".format_map({"ename": "", "evalue": "", **reply.content})
        text = f"failed with {what}" if what != ": " else "was stopped"
        if reply.status == "dead":
            why = reply.content["evalue"]
            text = f"{'ended' if why in (RESTARTED, STOPPED) else 'died'}: {why}"
        causes.setdefault(text.rstrip(": "), []).append(reply.rank)
    names = [
        (f"Rank {ranks[0]}" if len(ranks) == 1 else f"Ranks {format_ranks(ranks)}") + f" {what}."
        for what, ranks in causes.items()
    ]
    traceback = failed[0].content.get("traceback", [])
    head = [f"[{failed[0].rank}] failed:"] if traceback else []
    return CellFailed(" ".join(names), [*head, *traceback])
