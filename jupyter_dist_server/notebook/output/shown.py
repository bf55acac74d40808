"""What a cell has shown, in the format of notebook files."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ...common.protocol.jupyter_messages import Content, Message

_MOST = 16 * 1024**2
"""Characters of a cell that are kept. Cells on ranks have a lower limit of their own."""
_CUT = "\n[For a page that is loaded again, no more output of this cell is kept.]\n"
_DROPPED = "[Output of this cell that no page had saved was dropped, as later cells had more.]\n"


@dataclass
class Shown:
    """The outputs of one execution of a cell."""

    session: str
    """That of the page that ran it."""
    sent: str
    """When that page asked for it."""
    cell_id: str
    code: str
    outputs: list[Content] = field(default_factory=list)
    """A stream's text is a list of strings."""
    execution_count: int | None = None
    is_running: bool = True
    size: int = 0
    question: Content | None = None
    """What it asks the user now."""
    depth: int = 0
    """How many cells it runs within itself."""
    is_cut: bool = False
    is_dropped: bool = False
    _last: deque[str] = field(default_factory=lambda: deque(maxlen=8))
    """The messages that may be told before they are sent."""
    _displays: dict[str, list[Content]] = field(default_factory=dict)
    _cleared: bool = False

    def add(self, message: Message) -> None:
        """Take what is published."""
        content, kind = message["content"], message["header"]["msg_type"]
        if message_id := message["header"].get("msg_id"):
            self._last.append(message_id)
        if kind == "clear_output":
            self._cleared = True
            if not content["wait"]:
                self._clear_at_last()
        elif kind == "update_display_data":
            self.update(content)
        else:
            self._clear_at_last()
            self._append(kind, content)

    def update(self, content: Content) -> None:
        """Draw a display again; another cell may have made it."""
        for output in self._displays.get(content["transient"].get("display_id"), []):
            self.size -= _size(output)
            output.update(data=content["data"], metadata=content["metadata"])
            self.size += _size(output)

    def finish(self, error: Content | None) -> None:
        """Take the end."""
        if error:
            self._clear_at_last()
            self.outputs.append({"output_type": "error", **error})
        self.is_running = False
        self.question = None

    def drop(self) -> None:
        """Forget the outputs, and say so."""
        self.outputs = [{"output_type": "stream", "name": "stderr", "text": [_DROPPED]}]
        self._displays.clear()
        self.size, self.is_dropped = 0, True

    def told(self, request: str) -> Content:
        """Return what a page is told."""
        places = {id(output): place for place, output in enumerate(self.outputs)}
        return {
            "request": request,
            "session": self.session,
            "sent": self.sent,
            "cell_id": self.cell_id,
            "code": self.code,
            "execution_count": self.execution_count,
            "outputs": [_joined(output) for output in self.outputs],
            "displays": {
                name: [places[id(output)] for output in outputs]
                for name, outputs in self._displays.items()
            },
            "cleared": self._cleared,
            "running": self.is_running,
            "cut": self.is_cut,
            "dropped": self.is_dropped,
            "last": list(self._last),
            "question": self.question,
        }

    def _append(self, kind: str, content: Content) -> None:
        if self.is_cut:
            return
        if self.size > _MOST:
            self.is_cut = True
            kind, content = "stream", {"name": "stderr", "text": _CUT}
        if kind == "stream":
            last = self.outputs[-1] if self.outputs else {}
            if last.get("name") == content["name"]:
                last["text"].append(content["text"])
            else:
                text = [content["text"]]
                self.outputs.append({"output_type": kind, "name": content["name"], "text": text})
            self.size += len(content["text"])
            return
        output = {key: value for key, value in content.items() if key != "transient"}
        self.outputs.append({"output_type": kind, **output})
        self.size += _size(output)
        if display_id := content.get("transient", {}).get("display_id"):
            self._displays.setdefault(display_id, []).append(self.outputs[-1])

    def _clear_at_last(self) -> None:
        if self._cleared:
            self.outputs.clear()
            self._displays.clear()
            self.size, self.is_cut = 0, False
        self._cleared = False


def _size(output: Content) -> int:
    values = output["data"].values()
    return sum(len(value if isinstance(value, str) else repr(value)) for value in values)


def _joined(output: Content) -> Content:
    """Return a copy with its text in one string: in a list, JupyterLab expects lines."""
    return output | ({"text": "".join(output["text"])} if "text" in output else {})
