"""What a cell on ranks publishes in the notebook, and how."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import groupby

from ...common.protocol.jupyter_messages import Content


@dataclass
class Text:
    """Lines for a stream, labelled with their ranks."""

    stream: str
    text: str


@dataclass
class Display:
    """Rich output; with `update`, a new state of an earlier one with the same `display_id`."""

    data: Content
    metadata: Content = field(default_factory=dict)
    display_id: str | None = None
    update: bool = False


@dataclass
class Clear:
    """Clears all outputs; what stays is published again right after."""


@dataclass
class Begin:
    """A cell begins on ranks; it may show nothing for a long time."""


Publication = Text | Display | Clear

listeners: list[Callable[[Publication | Begin], None]] = []
"""Called with all that is published in the notebook's cells, and when one begins."""
publishing = threading.Lock()
"""Held while a piece is told to listeners and published, so that both are seen or neither."""


def overwrite(line: str) -> str:
    r"""Return what a terminal shows of a line with carriage returns: ``"10%\r20%"`` is 20%."""
    line = line.rstrip("\r")
    if "\r" not in line:
        return line
    parts = [part for part in re.split("\r+", line) if part]
    if "\x1b" in line:
        return parts[-1]  # escape codes have no width, so laying parts over each other fails
    shown = ""
    for part in parts:
        shown = part + shown[len(part) :]
    return shown.rstrip()


def own_id(rank: int, content: Content) -> str | None:
    """Return the notebook's ID for a display that a rank may update, also in later cells."""
    display_id = content.get("transient", {}).get("display_id")
    return f"jupyter-dist-{rank}-{display_id}" if display_id else None


def plain_text(rank: int, content: Content) -> str | None:
    """Return the text of a display that is only text, and not a list of lines."""
    data = content["data"]
    is_text = set(data) == {"text/plain"} and isinstance(data["text/plain"], str)
    return data["text/plain"] if is_text and not own_id(rank, content) else None


def join_texts(published: list[Publication]) -> list[Publication]:
    """Join neighbouring texts of one stream, so that a burst of lines is one message."""
    joined: list[Publication] = []
    for stream, run in groupby(published, lambda piece: getattr(piece, "stream", None)):
        if stream is None:
            joined += run
        else:
            texts = [piece.text for piece in run if isinstance(piece, Text)]
            joined.append(Text(stream, "".join(texts)))
    return joined


def begin() -> None:
    """Tell listeners that a cell begins."""
    with publishing:
        for listener in listeners:
            listener(Begin())


def publish(publications: Iterable[Publication]) -> None:
    """Show publications in the running cell."""
    from IPython.display import clear_output, publish_display_data

    for piece in publications:
        with publishing:
            for listener in listeners:
                listener(piece)
            if isinstance(piece, Text):
                stream = sys.stderr if piece.stream == "stderr" else sys.stdout
                stream.write(piece.text)
                stream.flush()  # keeps the order of stdout and stderr
            elif isinstance(piece, Display):
                transient = {"display_id": piece.display_id} if piece.display_id else {}
                publish_display_data(
                    piece.data, piece.metadata, transient=transient, update=piece.update
                )
            else:
                clear_output(wait=True)
