"""What cells on the ranks have shown, for a page that was loaded again meanwhile.

JupyterLab then knows nothing of a cell that runs, and drops what it shows from there on. So the
kernel keeps what its last cells have shown, and the new page asks for it over a comm. It opens that
on the control channel, where the kernel answers while a cell runs. What the cell shows from there
on follows the answer on iopub, and the page adds it.
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
_OPEN = "comm_open"
"""The message that opens a comm, here on the control channel, which has none otherwise."""
_KEPT = 8
"""Cells; each has its limit for how much it may show."""


@dataclass
class Shown:
    """What one cell has shown, as a notebook file has it."""

    session: str
    """Of the page that ran it."""
    cell_id: str
    code: str
    outputs: list[Content] = field(default_factory=list)
    """A stream's text is a list of strings, to be joined."""
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
        """Return what a page is told; `age` is None while the cell runs."""
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
    """Keeps what cells have shown, and tells it to pages that ask.

    Parameters
    ----------
    shell : InteractiveShell
        The notebook's.
    kernel : IPythonKernel
        Which has it.
    """

    def __init__(self, shell: InteractiveShell, kernel: Any) -> None:
        self._shell = shell
        self._kernel = kernel
        self._cells: OrderedDict[str, Shown] = OrderedDict()

    def install(self) -> None:
        """Begin to listen."""
        publish.listeners.append(self._take)
        self._shell.events.register("post_run_cell", self._end)
        comms = self._kernel.comm_manager
        comms.register_target(TARGET, self._on_open)
        self._kernel.control_handlers[_OPEN] = comms.comm_open

    def remove(self) -> None:
        """Listen no more."""
        publish.listeners.remove(self._take)
        self._shell.events.unregister("post_run_cell", self._end)
        self._kernel.comm_manager.unregister_target(TARGET, self._on_open)
        del self._kernel.control_handlers[_OPEN]

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
        """Tell a page what cells of other pages have shown, and how many seconds ago they ended."""
        session = message["header"]["session"]
        # What is not in the answer comes after it.
        with publish.publishing:
            cells = [
                shown.told(request)
                for request, shown in self._cells.items()
                if shown.session != session
            ]
            comm.send({"cells": cells})
            comm.close()


def _joined(output: Content) -> Content:
    """Return an output with its text in one; JupyterLab takes a list for lines without ends."""
    return output | {"text": "".join(output["text"])} if "text" in output else output
