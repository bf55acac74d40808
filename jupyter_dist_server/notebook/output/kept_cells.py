"""The cells whose outputs no page has saved yet."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from ...common.protocol.jupyter_messages import Content, Message
from .shown import Shown

_OUTPUTS = 32
"""Cells whose outputs are kept."""
_SIZE = 64 * 1024**2
"""Characters that they have together."""
_CELLS = 1000
"""Cells that are known at all; of the others, only that their output was dropped."""


class KeptCells:
    """Keeps outputs until a page says that it has saved them; callable from any thread."""

    def __init__(self) -> None:
        self._cells: OrderedDict[str, Shown] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0

    def begin(self, request: str, shown: Shown) -> None:
        """Take a cell that runs; its earlier outputs are gone."""
        with self._lock:
            for earlier, cell in list(self._cells.items()):
                if cell.cell_id == shown.cell_id and not cell.is_running:
                    del self._cells[earlier]
            self._cells[request] = shown
            if len(self._cells) > _CELLS:
                self._cells.popitem(last=False)
            self._bound()

    def get(self, request: str | None) -> Shown | None:
        """Return a cell."""
        return self._cells.get(request or "")

    def add(self, message: Message) -> None:
        """Take what is published, in whatever cell."""
        with self._lock:
            request = message["parent_header"].get("msg_id")
            own = self._cells.get(request)
            if own:
                self._size -= own.size
                own.add(message)
                self._size += own.size
                if self._size > _SIZE:
                    self._bound()
            if message["header"]["msg_type"] == "update_display_data":
                for cell in self._cells.values():
                    if cell is not own:
                        cell.update(message["content"])

    def finish(
        self, request: str, error: Content | None, execution_count: int | None, *, is_cut: bool
    ) -> None:
        """Take the end of a cell."""
        with self._lock:
            if shown := self._cells.get(request):
                shown.execution_count = execution_count
                shown.finish(error)
                shown.is_cut |= is_cut

    def saved(self, requests: Iterable[str]) -> None:
        """Forget cells that a page has saved."""
        with self._lock:
            for request in requests:
                if (shown := self._cells.get(request)) and not shown.is_running:
                    del self._cells[request]

    def told(self, session: str, known: Iterable[str]) -> list[Content]:
        """Return the cells that a page has neither run nor already."""
        with self._lock:
            known = set(known)
            return [
                shown.told(request)
                for request, shown in self._cells.items()
                if shown.session != session and request not in known
            ]

    def _bound(self) -> None:
        """Drop outputs, the oldest first."""
        kept = [shown for shown in self._cells.values() if shown.size]
        self._size = sum(shown.size for shown in kept)
        for place, shown in enumerate(kept):
            if len(kept) - place < _OUTPUTS and self._size <= _SIZE:
                return
            if not shown.is_running:
                self._size -= shown.size
                shown.drop()
