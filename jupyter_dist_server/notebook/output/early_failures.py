"""Says that ranks failed while others still run, and may wait for them in a collective."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.protocol.jupyter_messages import Content
from ...common.rank_specs import format_ranks
from .publish import Text


class EarlyFailures:
    """The failures of one cell that were not announced yet."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self.due: float | None = None
        """When to announce them."""
        self._running = set(ranks)
        self._failed: dict[int, Content] = {}

    def is_running(self, rank: int) -> bool:
        """Tell whether a rank has not finished the cell."""
        return rank in self._running

    def finish(self, rank: int, end: Content, now: float) -> None:
        """Note how a rank finished the cell."""
        self._running.discard(rank)
        if end["status"] != "ok":
            self._failed[rank] = end
            # A death may soon end the cell; other ranks may fail of the same error.
            due = now + (0.05 if end["status"] == "dead" else 1.0)
            self.due = min(self.due or due, due)

    def take(self) -> tuple[list[Text], dict[int, Content]]:
        """Return what to announce now, and how ranks failed."""
        failed, self._failed, self.due = self._failed, {}, None
        others = format_ranks(self._running)
        said = []
        for rank, end in failed.items():
            verb = "died" if end["status"] == "dead" else "failed"
            text = f"[{rank}] {verb} ({what_failed(end)}); ranks still running: {others}.\n"
            said += [Text("stderr", text)] if others else []
        return said, failed


def what_failed(end: Content) -> str:
    """Say in one line how a rank failed."""
    what = f"{end.get('ename', '')}: {end.get('evalue', '')}".partition("\n")[0]
    return what.removeprefix("RankDied: ").strip(": ") or "did not stop"
