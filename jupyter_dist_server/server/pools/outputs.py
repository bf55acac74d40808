"""The outputs of ranks in REST responses: notebook outputs, with limits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator

from ...common.protocol.jupyter_messages import Content, write_json
from ...common.units import format_bytes

BACKLOG = 1 << 24
"""Characters that may wait for a slow reader."""
PORTION = 1 << 20
"""Characters that are written at once, before other requests have their turn."""
LARGEST_DISPLAY = 2 << 20
"""Bytes of one display, which is read and written in one callback of the event loop."""
COLLECTED = 1 << 27
"""Characters of outputs in one response."""


def to_output(kind: str, content: Content) -> Content | None:
    """Return a message as a notebook output (nbformat 4); `None` for other messages."""
    if kind == "stream":
        return {"output_type": "stream", "name": content["name"], "text": content["text"]}
    if kind == "error":
        names = ("ename", "evalue", "traceback")
        return {"output_type": "error", **{name: content[name] for name in names}}
    if kind in ("display_data", "update_display_data", "execute_result"):
        output = {"data": content["data"], "metadata": content.get("metadata", {})}
        if kind == "execute_result":
            output["execution_count"] = content["execution_count"]
            return {"output_type": kind, **output}
        return {"output_type": "display_data", **output}
    return None


def _notice(size: int, why: str) -> Content:
    text = f"… {format_bytes(size)} of outputs cut here: {why}\n"
    return {"output_type": "stream", "name": "stderr", "text": text}


class Backlog:
    """Lines of a stream that wait for its reader.

    If too many wait, outputs are cut until it has read the rest, and it is told how much.
    """

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._size = 0
        self._cut: dict[int, int] = {}
        """Characters by rank."""
        self._ended = False
        self._news = asyncio.Event()

    def put(self, rank: int, kind: str, content: Content) -> None:
        """Add an output of a rank."""
        if not (output := to_output(kind, content)):
            return
        line = _line(rank, output)
        if self._cut or (self._lines and self._size + len(line) > BACKLOG):
            self._cut[rank] = self._cut.get(rank, 0) + len(line)
        else:
            self._lines.append(line)
            self._size += len(line)
        self._news.set()

    def end(self) -> None:
        """Note the end of the outputs."""
        self._ended = True
        self._news.set()

    async def take(self) -> str:
        """Wait for the next lines and return them; an empty text is the end."""
        while not (self._lines or self._cut or self._ended):
            self._news.clear()
            await self._news.wait()
        if not self._lines:
            cut, self._cut = self._cut, {}
            why = "they came faster than they were read"
            return "".join(_line(rank, _notice(size, why)) for rank, size in sorted(cut.items()))
        line = self._lines.popleft()
        self._size -= len(line)
        return line


def _line(rank: int, output: Content) -> str:
    return write_json({"rank": rank, "output": output}) + "\n"


class Collected:
    """All outputs of an execution by rank."""

    def __init__(self, ranks: Iterable[int]) -> None:
        self._outputs: dict[int, list[str | tuple[str, list[str]]]] = {rank: [] for rank in ranks}
        """By rank, JSON, or the name of a stream and the pieces of its text."""
        self._sizes = dict.fromkeys(self._outputs, 0)
        self._cut = dict.fromkeys(self._outputs, 0)

    def add(self, rank: int, kind: str, content: Content) -> None:
        """Add an output of a rank."""
        outputs = self._outputs[rank]
        if kind == "clear_output":
            outputs.clear()
            self._sizes[rank] = self._cut[rank] = 0
            return
        output = to_output(kind, content)
        if output is None:
            return
        piece = output["text"] if kind == "stream" else write_json(output)
        if sum(self._sizes.values()) + len(piece) > COLLECTED and kind != "error":
            self._cut[rank] += len(piece)
            return
        self._sizes[rank] += len(piece)
        if kind != "stream":
            outputs.append(piece)
        elif outputs and isinstance(last := outputs[-1], tuple) and last[0] == output["name"]:
            last[1].append(piece)
        else:
            outputs.append((output["name"], [piece]))

    def pieces(self, statuses: dict[int, str]) -> Iterator[str]:
        """Yield the response in pieces of JSON."""
        comma = ""
        yield '{"ranks": {'
        for rank, outputs in self._outputs.items():
            yield f'{comma}"{rank}": {{"status": {write_json(statuses[rank])}, "outputs": ['
            comma = ""
            if self._cut[rank]:
                limit = format_bytes(COLLECTED)
                why = f"a response is limited to {limit}; a stream has no such limit"
                outputs.append(write_json(_notice(self._cut[rank], why)))
            for output in outputs:
                yield comma
                if isinstance(output, str):
                    yield from portions(output)
                else:
                    yield from _stream(*output)
                comma = ", "
            yield "]}"
            comma = ", "
        yield "}}"


def _stream(name: str, pieces: list[str]) -> Iterator[str]:
    yield f'{{"output_type": "stream", "name": {write_json(name)}, "text": "'
    for piece in pieces:
        yield from portions(write_json(piece)[1:-1])
    yield '"}'


def portions(text: str) -> Iterator[str]:
    """Cut a text into parts that delay no other request."""
    for at in range(0, len(text), PORTION):
        yield text[at : at + PORTION]
