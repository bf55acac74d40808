"""The execution of a cell on ranks, as a client sees it, and all executions of one client."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ..common.background_tasks import within
from ..common.protocol.jupyter_messages import Content, Message
from ..common.protocol.ranks.rank_messages import CancelReply

_LOG = logging.getLogger(__name__)

OnOutput = Callable[[int, str, Content], None]
"""Takes the rank, the message type and the content of an output, in order for each rank.

When a rank is done, the type is ``finished``, and the content ``{status, ename, evalue}``. Later
outputs are from threads that the cell has left behind.
"""
_OUTPUTS = frozenset(
    ["stream", "display_data", "update_display_data", "execute_result", "error", "clear_output"]
)
_REMEMBERED = 64
"""Cells that run, or have ended and whose threads may still print."""


@dataclass
class Reply:
    """How a cell ended on one rank."""

    rank: int
    status: str
    """``ok``, ``error``, ``aborted``, ``dead``, or ``late`` if it did not stop."""
    content: Content = field(default_factory=dict)


class Execution:
    """One cell on its way through the ranks; `on_output` is called in the event loop."""

    def __init__(
        self, ranks: Iterable[int], on_output: OnOutput, cell_id: str | None = None
    ) -> None:
        self.cell_id = cell_id
        self.id = ""
        self.begun: set[int] = set()
        """Ranks that, asked to cancel it, were running it; on others it waited for the lock."""
        self.places: dict[int, CancelReply] = {}
        """Where those ranks were then."""
        self.stopped: set[int] = set()
        """Those of them whose process did not answer, as a signal has stopped it."""
        self.group = ""
        """The process group that these ranks had last been told to make, if it is the same."""
        self.is_queued = False
        """Whether it has been sent to no rank yet: it waits for the lock, or the process group."""
        self.stopping = False
        self.broke = False
        """Whether the process group was broken, as interrupts were not enough."""
        self.replies: dict[int, Reply] = {}
        self.done = asyncio.Event()
        self._on_output = on_output
        self._waiting = set(ranks)
        self._moved = asyncio.Event()
        """Set at each rank's end, and by `hurry`."""
        self._hurried = False

    @property
    def outstanding(self) -> list[int]:
        """Ranks that have not finished."""
        return sorted(self._waiting)

    def hurry(self) -> None:
        """End the present wait for ranks."""
        self._hurried = True
        self._moved.set()

    async def ended(self, ranks: set[int], seconds: float) -> bool:
        """Wait until some ranks have ended, or for `hurry`; tell whether they have ended."""
        deadline = time.monotonic() + seconds
        while ranks & self._waiting:
            self._moved.clear()
            left = deadline - time.monotonic()
            if left <= 0 or self._hurried:
                self._hurried = False
                return False
            try:
                await within(self._moved.wait(), left)
            except asyncio.TimeoutError:
                continue
        return True

    def output(self, rank: int, kind: str, content: Content) -> None:
        """Pass on what a rank shows; a mistake in the callback must not keep the cell going."""
        try:
            self._on_output(rank, kind, content)
        except Exception:
            _LOG.exception("Handling an output of rank %s failed", rank)

    def finish(self, rank: int, content: Content) -> None:
        """Note a rank's reply."""
        if rank in self._waiting:
            self._drop(Reply(rank, content["status"], content))

    def lose(self, rank: int, why: str) -> None:
        """Note that a rank died, or that nobody waits for it any more."""
        if rank in self._waiting:
            self._drop(Reply(rank, "dead", {"ename": "RankDied", "evalue": why}))

    def _drop(self, reply: Reply) -> None:
        self._waiting.discard(reply.rank)
        self.replies[reply.rank] = reply
        names = {name: reply.content.get(name, "") for name in ("ename", "evalue")}
        self.output(reply.rank, "finished", {"status": reply.status, **names})
        self._moved.set()
        if not self._waiting:
            self.done.set()


class Executions:
    """Executions of one client by the request that began them."""

    def __init__(self) -> None:
        self._by_request: OrderedDict[str, Execution] = OrderedDict()
        """Among those that have ended, the last one with an output is at the end."""

    def __iter__(self) -> Iterator[Execution]:
        return iter(self._by_request.values())

    def add(self, execution: Execution) -> None:
        """Remember an execution, and not too many that have ended."""
        self._by_request[execution.id] = execution
        if len(self._by_request) > _REMEMBERED:
            ended = (one for one in self._by_request.values() if one.done.is_set())
            self.forget(list(ended)[:1])

    def forget(self, executions: Iterable[Execution]) -> None:
        """Take in no more outputs of executions, not even from threads that they left behind."""
        for execution in executions:
            self._by_request.pop(execution.id, None)

    def hear(self, rank: int, message: Message) -> None:
        """Take what a rank shows, or how a cell ended."""
        kind, content = message["header"]["msg_type"], message["content"]
        parent = message["parent_header"].get("msg_id", "")
        if execution := self._by_request.get(parent):
            if kind == "execute_reply":
                execution.finish(rank, content)
            elif kind in _OUTPUTS:
                execution.output(rank, kind, content)
            elif kind == "input_request":
                execution.output(rank, kind, content | {"parent": message["header"]})
            if execution.done.is_set():
                self._by_request.move_to_end(parent)
