"""The display that makes JupyterLab show a tab for each rank."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.protocol.jupyter_messages import Content
from ...common.rank_specs import format_ranks
from .merged.shown_pieces import STREAM
from .publish import Clear, Display, Publication, Text

MIME = "application/vnd.jupyter-dist.ranks+json"
_LONGEST = 200
"""Characters of an error that the mark includes."""
_STREAM_LIMIT = 200_000
"""Characters of one stream output: JupyterLab compares all of it with each addition."""


class RankTabs:
    """Puts the mark, a display, before a cell's outputs, and tells it which ranks failed.

    In other front ends, it is empty HTML.
    """

    def __init__(self, ranks: Iterable[int], world_size: int, name: str) -> None:
        self._ranks = format_ranks(ranks)
        self._world_size = world_size
        self._name = name
        self._failed: dict[str, str] = {}
        self._is_shown = False
        self._in_a_row = 0

    def mark(self, published: Iterable[Publication]) -> list[Publication]:
        """Return outputs with the mark before the first one, also after all was cleared."""
        marked: list[Publication] = []
        for piece in published:
            if isinstance(piece, Clear):
                self._is_shown = False
            elif not self._is_shown:
                self._is_shown = True
                marked.append(self._draw())
            marked.append(self._shorten(piece))
        return marked

    def fail(self, failed: dict[int, str]) -> list[Publication]:
        """Note why ranks failed; return the mark if it must be drawn again."""
        before = dict(self._failed)
        self._failed |= {str(rank): why[:_LONGEST] for rank, why in sorted(failed.items())}
        return [self._draw(update=True)] if self._is_shown and self._failed != before else []

    def _draw(self, update: bool = False) -> Display:
        content: Content = {"ranks": self._ranks, "world_size": self._world_size}
        if self._failed:
            content["failed"] = dict(self._failed)
        return Display({MIME: content, "text/html": ""}, {}, self._name, update)

    def _shorten(self, piece: Publication) -> Publication:
        """End a long stream with a display that looks the same."""
        if not isinstance(piece, Text):
            if not (isinstance(piece, Display) and piece.update):
                self._in_a_row = 0
            return piece
        self._in_a_row += len(piece.text)
        if self._in_a_row <= _STREAM_LIMIT:
            return piece
        self._in_a_row = 0
        data = {"text/plain": piece.text.removesuffix("\n")}
        if piece.stream == "stderr":
            data["application/vnd.jupyter.stderr"] = piece.text
        return Display(data, {STREAM: piece.stream})
