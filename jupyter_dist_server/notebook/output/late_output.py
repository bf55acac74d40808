"""Output of threads after the end of their cell, shown below that cell."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from ...common.protocol.jupyter_messages import NO_REDRAW, Content
from .merged.shown_pieces import KIND
from .publish import own_id

_CELL_ID = re.compile(r"[\w-]+")
_WITHIN = re.compile(r"(\r\n|\r|\n)(?=[\s\S])")


class LateOutput:
    """Shows late outputs below the cell that runs when it is created."""

    def __init__(self) -> None:
        from IPython import get_ipython

        self._kernel: Any = getattr(get_ipython(), "kernel", None)
        self._parent = self._kernel.get_parent() if self._kernel else None
        self._open: tuple[int, str] | None = None
        """The rank and stream of the unfinished line."""
        self._at_start = True
        self._broken_off: set[tuple[int, str]] = set()
        """The ranks and streams whose unfinished line we have ended."""

    @property
    def in_notebook(self) -> bool:
        """Whether there is a front end, in which displays can be drawn again."""
        return self._kernel is not None and NO_REDRAW not in os.environ

    @property
    def cell_id(self) -> str | None:
        """The cell's ID in JupyterLab; not in VS Code, where it is a URI."""
        cell_id = (self._parent or {}).get("metadata", {}).get("cellId")
        return cell_id if isinstance(cell_id, str) and _CELL_ID.fullmatch(cell_id) else None

    def show(self, rank: int, kind: str, content: Content) -> None:
        """Show one output; callable from any thread."""
        if kind == "stream":
            if text := self._labelled(rank, content["name"], content["text"]):
                self._send("stream", {"name": content["name"], "text": text})
        elif kind in ("display_data", "execute_result"):
            self._finish_line()
            data = {"text/plain": f"[{rank}]"}
            label = {"data": data, "metadata": {KIND: "label"}, "transient": {}}
            self._send("display_data", label)
            self._send("display_data", self._renamed(rank, content))
        elif kind == "update_display_data":
            self._send(kind, self._renamed(rank, content))

    def tell(self, text: str) -> None:
        """Show a notice; callable from any thread."""
        self._finish_line()
        self._send("stream", {"name": "stderr", "text": text})

    def _renamed(self, rank: int, content: Content) -> Content:
        display_id = own_id(rank, content)
        transient = {"display_id": display_id} if display_id else {}
        return {"data": content["data"], "metadata": content["metadata"], "transient": transient}

    def _labelled(self, rank: int, stream: str, text: str) -> str:
        """Put the rank before each line, except where its unfinished line goes on."""
        label, place = f"[{rank}] ", (rank, stream)
        if self._open != place:
            self._finish_line()
        if place in self._broken_off:
            self._broken_off.discard(place)
            if not (text := text.removeprefix("\n")):
                return ""
        lead = label if self._at_start else ""
        self._at_start = text.endswith(("\n", "\r"))
        self._open = None if text.endswith("\n") else place
        return lead + _WITHIN.sub(rf"\1{label}", text)

    def _finish_line(self) -> None:
        if self._open:
            self._broken_off.add(self._open)
            self._send("stream", {"name": self._open[1], "text": "\n"})
        self._open, self._at_start = None, True

    def _send(self, kind: str, content: Content) -> None:
        if self._kernel:
            # sys.stdout would put it below the cell that runs now.
            socket, topic = self._kernel.iopub_socket, kind.encode()
            self._kernel.session.send(socket, kind, content, self._parent, ident=topic)
        elif kind == "stream":
            getattr(sys, content["name"]).write(content["text"])
