"""Outputs grouped by rank: the first rank's as they arrive, the others' afterwards."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.protocol.jupyter_messages import Content
from .publish import Display, Publication, Text, join_texts, own_id, plain_text

_Output = tuple[str, Content]


class PerRank:
    """Shows the outputs of one cell by rank, each under a heading; used instead of a `Merger`."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self.errors: list[tuple[list[int], Content]] = []
        """Each rank's error, in order of arrival."""
        self._order = sorted(ranks)
        self._next = 0
        self._outputs: dict[int, list[_Output]] = {rank: [] for rank in self._order}
        self._finished: set[int] = set()
        self._headed: set[int] = set()
        self._under: int | None = None
        """The rank whose heading was shown last."""
        self._line_open = False

    def feed(self, rank: int, kind: str, content: Content, now: float) -> None:
        """Take one output of a rank."""
        if kind == "error":
            self.errors.append(([rank], content))
        elif kind == "clear_output":
            if rank not in self._headed:  # what is shown already stays
                self._outputs[rank].clear()
        else:
            self._outputs[rank].append((kind, content))

    def finish(self, rank: int, now: float) -> None:
        """Note that a rank has finished the cell."""
        self._finished.add(rank)

    def take(self, now: float, last: bool = False) -> list[Publication]:
        """Return what to publish now; with `last`, everything that is left."""
        published: list[Publication] = []
        while self._next < len(self._order):
            rank = self._order[self._next]
            published += self._show(rank)
            if rank not in self._finished and not last:
                break
            if self._line_open:
                published.append(Text("stdout", "\n"))
                self._line_open = False
            self._next += 1
        return join_texts(published)

    def take_all(self, rank: int, now: float) -> list[Publication]:
        """Return also what a later rank has shown so far: it asks a question now."""
        return join_texts(self.take(now) + self._show(rank))

    def _show(self, rank: int) -> list[Publication]:
        outputs, self._outputs[rank] = self._outputs[rank], []
        published: list[Publication] = []
        if outputs and rank != self._under:
            before = "\n" if self._line_open else ""
            published.append(Text("stdout", f"{before}Rank {rank}\n"))
            self._headed.add(rank)
            self._under, self._line_open = rank, False
        for kind, content in outputs:
            before, self._line_open = "\n" if self._line_open else "", False
            if kind == "stream":
                self._line_open = not content["text"].endswith("\n")
                published.append(Text(content["name"], content["text"]))
            elif (text := plain_text(rank, content)) is not None:
                published.append(Text("stdout", f"{before}{text}\n"))
            else:
                update, own = kind == "update_display_data", own_id(rank, content)
                metadata = content.get("metadata", {})
                published.append(Display(content["data"], metadata, own, update))
        return published

    def next_time(self, now: float) -> None:
        """Never ask to be called again: nothing here waits for a time."""
