"""What one cell showed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from jupyter_dist_server.notebook.output.merged.shown_pieces import STREAM

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
MARK = re.compile(r"\[([\d,-]+)\] +")


@dataclass
class Result:
    """What one cell showed, as a front end that applies updates and clears would show it."""

    status: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    prompts: list[str] = field(default_factory=list)
    """What ``input()`` asked."""
    _clear: bool = False

    def add(self, kind: str, content: dict[str, Any]) -> None:
        """Apply one message."""
        if kind == "clear_output":
            self._clear = True
            if not content["wait"]:
                self.outputs.clear()
            return
        if self._clear and kind != "update_display_data":
            self.outputs.clear()
            self._clear = False
        if kind == "update_display_data":
            for output in self.outputs:
                if output.get("display_id") == content["transient"]["display_id"]:
                    output.update(_shown(content))
        elif kind == "stream":
            last = self.outputs[-1] if self.outputs else {}
            if last.get("name") == content["name"] and "display_id" not in last:
                last["text"] += content["text"]
            else:
                self.outputs.append({"type": kind, **content})
        elif kind == "error":
            self.outputs.append({"type": kind, **content})
        elif kind in ("display_data", "execute_result"):
            display_id = content.get("transient", {}).get("display_id")
            self.outputs.append({"type": kind, "display_id": display_id, **_shown(content)})

    def stream(self, name: str) -> str:
        """Return all text of one stream."""
        return ANSI.sub("", "".join(o["text"] for o in self.outputs if o.get("name") == name))

    @property
    def text(self) -> str:
        """Standard output."""
        return self.stream("stdout")

    @property
    def lines(self) -> list[str]:
        """Lines of standard output, without trailing blanks."""
        return [line.rstrip() for line in self.text.splitlines()]

    @property
    def lines_by_rank(self) -> dict[int, list[str]]:
        """Marked lines of standard output, for each of the ranks that printed them."""
        found: dict[int, list[str]] = {}
        for line in self.lines:
            if marked := MARK.match(line):
                for part in marked[1].split(","):
                    first, _, end = part.partition("-")
                    for rank in range(int(first), int(end or first) + 1):
                        found.setdefault(rank, []).append(line[marked.end() :])
        return found

    def said_by(self, line: str) -> set[int]:
        """Return the ranks that have printed a line."""
        return {rank for rank, lines in self.lines_by_rank.items() if line in lines}

    @property
    def shown(self) -> str:
        """Everything as text, in order."""
        parts = []
        for output in self.outputs:
            if output["type"] == "stream":
                parts.append(output["text"])
            elif output["type"] == "error":
                parts.append("\n".join(output["traceback"]))
            else:
                parts.append(output["data"].get("text/plain", "") + "\n")
        return ANSI.sub("", "".join(parts))

    @property
    def error(self) -> str:
        """The error as shown; empty if the cell went well."""
        shown = [o["traceback"] for o in self.outputs if o["type"] == "error"]
        return ANSI.sub("", "\n".join(line for lines in shown for line in lines))

    def mime(self, kind: str) -> list[str]:
        """Return the content of all displays that have this MIME type."""
        return [o["data"][kind] for o in self.outputs if kind in o.get("data", {})]


def _shown(content: dict[str, Any]) -> dict[str, Any]:
    """Return rich output; text that is a display only to be drawn again counts as a stream's."""
    if stream := content["metadata"].get(STREAM):
        return {"type": "stream", "name": stream, "text": content["data"]["text/plain"] + "\n"}
    return {"data": content["data"]}
