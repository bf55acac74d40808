"""What threads print after their cell has ended: shown, and under the cell that started them."""

from __future__ import annotations

import sys
from typing import Any


class Trail:
    """Shows late outputs below a cell of the notebook; made while that cell runs."""

    def __init__(self) -> None:
        from IPython import get_ipython

        self._kernel: Any = getattr(get_ipython(), "kernel", None)
        self._parent = self._kernel.get_parent() if self._kernel else None

    @property
    def in_notebook(self) -> bool:
        """Whether there is a front end, in which displays can be drawn again."""
        return self._kernel is not None

    def show(self, rank: int, kind: str, content: dict[str, Any]) -> None:
        """Show one output; callable from any thread."""
        if kind == "stream":
            text = "".join(f"[{rank}] {line}\n" for line in content["text"].splitlines())
            self._send("stream", {"name": content["name"], "text": text})
        elif kind in ("display_data", "execute_result"):
            label = {"data": {"text/plain": f"[{rank}]"}, "metadata": {}, "transient": {}}
            self._send("display_data", label)
            shown = {"data": content["data"], "metadata": content["metadata"], "transient": {}}
            self._send("display_data", shown)

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        if self._kernel:
            # Not by sys.stdout, which would put it under the cell that runs now.
            socket, topic = self._kernel.iopub_socket, kind.encode()
            self._kernel.session.send(socket, kind, content, self._parent, ident=topic)
        elif kind == "stream":
            getattr(sys, content["name"]).write(content["text"])
