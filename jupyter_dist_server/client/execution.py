"""One cell on its way through the ranks, as a client sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .interrupt import Ladder

_LOG = logging.getLogger(__name__)

OnOutput = Callable[[int, str, dict[str, Any]], None]


@dataclass
class Reply:
    """How a cell ended on one rank."""

    rank: int
    status: str
    """``ok``, ``error``, ``aborted``, ``dead``, or ``late`` if it did not stop."""
    content: dict[str, Any] = field(default_factory=dict)


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
    """

    def __init__(self, ranks: Iterable[int], on_output: OnOutput) -> None:
        self.id = ""
        self.begun: set[int] = set()
        """Ranks that, asked to cancel it, were running it; on others it waited for its turn."""
        self.places: dict[int, dict[str, Any]] = {}
        """Where those ranks were then: line and collective, see `whereabouts`."""
        self.stopped: set[int] = set()
        """Those of them whose process did not answer, as a signal has stopped it."""
        self.ladder: Ladder | None = None
        """Stops it, if somebody wants that."""
        self.replies: dict[int, Reply] = {}
        self.moved = asyncio.Event()
        """Set at each rank's end."""
        self.done = asyncio.Event()
        self._on_output = on_output
        self._waiting = set(ranks)

    @property
    def outstanding(self) -> list[int]:
        """Ranks that have not finished."""
        return sorted(self._waiting)

    def output(self, rank: int, kind: str, content: dict[str, Any]) -> None:
        """Tell what a rank shows; a mistake of who is told must not keep the cell from ending."""
        try:
            self._on_output(rank, kind, content)
        except Exception:
            _LOG.exception("What rank %s showed could not be taken in", rank)

    def finish(self, rank: int, content: dict[str, Any]) -> None:
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
        self.moved.set()
        if not self._waiting:
            self.done.set()
