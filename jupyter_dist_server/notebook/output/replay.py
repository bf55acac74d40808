"""The outputs of cells on ranks, for a page that was reloaded meanwhile.

After that, JupyterLab does not know the running cell, and drops its output. So the kernel keeps the
outputs of its last cells, and the new page requests them over a comm. It opens that on the control
channel, where the kernel answers while a cell runs. Later outputs follow the answer on iopub, and
the page adds them.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...common.protocol.jupyter_messages import Content, Message
from . import publish
from .publish import Begin, Clear, Display, Publication, Text

TARGET = "jupyter_dist.replay"
"""The comm's name."""
_KEPT = 8
"""Cells whose outputs are kept; each has its output limit."""


@dataclass
class Shown:
    """The outputs of one cell, in the format of notebook files."""

    session: str
    """That of the page that ran it."""
    cell_id: str
    code: str
    outputs: list[Content] = field(default_factory=list)
    """A stream's text is a list of strings."""
    execution_count: int | None = None
    ended: float | None = None
    _displays: dict[str, list[Content]] = field(default_factory=dict)
    _cleared: bool = False

    def add(self, piece: Publication | Begin) -> None:
        """Take what is published."""
        if isinstance(piece, Text):
            self._clear_at_last()
            last = self.outputs[-1] if self.outputs else {}
            if last.get("name") == piece.stream:
                last["text"].append(piece.text)
            else:
                stream = {"output_type": "stream", "name": piece.stream, "text": [piece.text]}
                self.outputs.append(stream)
        elif isinstance(piece, Display):
            content = {"data": piece.data, "metadata": piece.metadata}
            if piece.update:
                for output in self._displays.get(piece.display_id or "", []):
                    output.update(content)
                return
            self._clear_at_last()
            self.outputs.append({"output_type": "display_data", **content})
            if piece.display_id:
                self._displays.setdefault(piece.display_id, []).append(self.outputs[-1])
        elif isinstance(piece, Clear):
            self._cleared = True

    def told(self, request: str) -> Content:
        """Return what a page is told; `age` is in seconds, and None while the cell runs."""
        places = {id(output): place for place, output in enumerate(self.outputs)}
        return {
            "request": request,
            "cell_id": self.cell_id,
            "code": self.code,
            "execution_count": self.execution_count,
            "outputs": [_joined(output) for output in self.outputs],
            "displays": {
                name: [places[id(output)] for output in outputs]
                for name, outputs in self._displays.items()
            },
            "cleared": self._cleared,
            "age": None if self.ended is None else time.monotonic() - self.ended,
        }

    def _clear_at_last(self) -> None:
        if self._cleared:
            self.outputs.clear()
            self._displays.clear()
        self._cleared = False


class Replay:
    """Keeps the outputs of cells, and sends them to pages that ask."""

    def __init__(self, shell: InteractiveShell, kernel: Any) -> None:
        self._shell = shell
        self._kernel = kernel
        self._cells: OrderedDict[str, Shown] = OrderedDict()

    def install(self) -> None:
        """Listen to outputs and pages."""
        publish.listeners.append(self._take)
        self._shell.events.register("post_run_cell", self._end)
        comms = self._kernel.comm_manager
        comms.register_target(TARGET, self._on_open)
        self._kernel.control_handlers["comm_open"] = comms.comm_open

    def remove(self) -> None:
        """Listen no more."""
        publish.listeners.remove(self._take)
        self._shell.events.unregister("post_run_cell", self._end)
        self._kernel.comm_manager.unregister_target(TARGET, self._on_open)
        del self._kernel.control_handlers["comm_open"]

    def _take(self, piece: Publication | Begin) -> None:
        parent = self._kernel.get_parent()
        cell_id = parent.get("metadata", {}).get("cellId")
        if not cell_id:  # not JupyterLab's
            return
        request = parent["header"]["msg_id"]
        if request not in self._cells:
            code = parent["content"]["code"]
            self._cells[request] = Shown(parent["header"]["session"], cell_id, code)
            if len(self._cells) > _KEPT:
                self._cells.popitem(last=False)
        self._cells[request].add(piece)

    def _end(self, result: Any) -> None:
        shown = self._cells.get(self._kernel.get_parent().get("header", {}).get("msg_id"))
        if shown is None:
            return
        if error := result.error_before_exec or result.error_in_exec:
            shown.outputs.append(
                {
                    "output_type": "error",
                    "ename": type(error).__name__,
                    "evalue": str(error),
                    "traceback": list(getattr(self._shell, "_last_traceback", None) or []),
                }
            )
        shown.execution_count = result.execution_count
        shown.ended = time.monotonic()

    def _on_open(self, comm: Any, message: Message) -> None:
        """Send a page the outputs of cells of other pages."""
        session = message["header"]["session"]
        with publish.publishing:
            cells = [
                shown.told(request)
                for request, shown in self._cells.items()
                if shown.session != session
            ]
            comm.send({"cells": cells})
            comm.close()


def _joined(output: Content) -> Content:
    """Return an output with its text in one string: in a list, JupyterLab expects lines."""
    return output | {"text": "".join(output["text"])} if "text" in output else output
