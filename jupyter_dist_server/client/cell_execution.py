"""The execution of one cell on ranks, as a client sees it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..common.protocol.jupyter_messages import Content
from ..common.protocol.ranks.rank_messages import CancelReply

_LOG = logging.getLogger(__name__)

OnOutput = Callable[[int, str, Content], None]


@dataclass
class Reply:
    """How a cell ended on one rank."""

    rank: int
    status: str
    """``ok``, ``error``, ``aborted``, ``dead``, or ``late`` if it did not stop."""
    content: Content = field(default_factory=dict)


class Execution:
    """One cell on its way through the ranks.

    Parameters
    ----------
    ranks : list of int
        Where it runs.
    on_output : callable
        Called in the event loop with ``(rank, message type, content)``, in order for each rank.
        When a rank is done it is called with the type ``finished`` and the content ``{status,
        ename, evalue}``. What comes after that is of threads that the cell has left behind.
    cell_id : str or None
        The notebook's id of the cell.
    """

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
        """The process group that all ranks that answered then had been told to make last."""
        self.is_queued = False
        """Whether no rank has been given it yet: it waits for the lock, or the process group."""
        self.stopping = False
        """Whether somebody wants it to be stopped."""
        self.broke = False
        """Whether interrupting was not enough: the process group was broken too."""
        self.replies: dict[int, Reply] = {}
        self.done = asyncio.Event()
        self._on_output = on_output
        self._waiting = set(ranks)
        self._moved = asyncio.Event()
        """Set at each rank's end, and when somebody is in a hurry."""
        self._hurried = False

    @property
    def outstanding(self) -> list[int]:
        """Ranks that have not finished."""
        return sorted(self._waiting)

    def hurry(self) -> None:
        """Let whoever waits for ranks to end wait no longer."""
        self._hurried = True
        self._moved.set()

    async def ended(self, ranks: set[int], seconds: float) -> bool:
        """Wait until some ranks have ended, or somebody is in a hurry; tell whether they have."""
        deadline = time.monotonic() + seconds
        while ranks & self._waiting:
            self._moved.clear()
            left = deadline - time.monotonic()
            if left <= 0 or self._hurried:
                self._hurried = False
                return False
            try:
                await asyncio.wait_for(self._moved.wait(), left)
            except asyncio.TimeoutError:
                continue
        return True

    def output(self, rank: int, kind: str, content: Content) -> None:
        """Tell what a rank shows; a mistake of who is told must not keep the cell from ending."""
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
