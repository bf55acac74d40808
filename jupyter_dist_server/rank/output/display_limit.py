"""The limit of a cell's displays, and the file with those that were cut."""

from __future__ import annotations

import json
from typing import BinaryIO

from ...common.protocol.jupyter_messages import Content
from ...common.units import format_bytes
from .output_files import open_output_file

SHARE = 10
"""Bytes that displays may take for each character that text may."""
REPLACED = 10
"""How often as much may be sent as is shown, of displays that take each other's place."""


class Displays:
    """How much one cell may display; what is over goes to a file, as notebook outputs, one a line.

    What takes the place of another display, by an update or after ``clear_output``, counts in its
    stead. As its reader may have stopped, the cell may not send without end all the same.

    Parameters
    ----------
    limit : int
        Bytes that are shown.
    largest : int
        Bytes of one display.
    name : str
        Of the file.
    """

    def __init__(self, limit: int, largest: int, name: str) -> None:
        self._largest = largest
        self._left = self._limit = limit
        self._to_send = REPLACED * limit
        self._name = name
        self._sizes: dict[str, int] = {}
        """By display id, of those that can be updated."""
        self._cut = 0
        self._count = 0
        self._file: BinaryIO | None = None
        self._trouble = ""

    def clear(self) -> None:
        """Note that nothing is shown any more."""
        self._left = self._limit
        self._sizes.clear()

    def admits(self, content: bytes) -> bool:
        """Tell whether a display, the content of its message, is to be shown; otherwise keep it."""
        place = _display_id(content)
        before = self._sizes.get(place, 0)
        grows = len(content) - before
        if grows > self._left or len(content) > min(self._largest, self._to_send):
            self._keep(content)
            return False
        self._left -= grows
        self._to_send -= len(content)
        if place:
            self._sizes[place] = len(content)
        return True

    def _keep(self, content: bytes) -> None:
        if not self._count:
            self._file, self._trouble = open_output_file(self._name)
        self._cut += len(content)
        self._count += 1
        if self._file:
            try:
                self._file.write(content + b"\n")
                self._file.flush()
            except OSError as error:  # the disk is full
                self._trouble = f"the file is not complete: {error}"

    @property
    def begins_to_cut(self) -> str:
        """What is said after the first display that was cut; of later ones, nothing."""
        if self._count != 1:
            return ""
        where = f"is in {self._file.name}" if self._file else f"is lost ({self._trouble})"
        return f"… a display of {format_bytes(self._cut)} was cut here; it {where}\n"

    def close(self) -> str:
        """End the cell; return what is to be said of displays that were cut."""
        if not self._count:
            return ""
        said = f"… {format_bytes(self._cut)} of displays cut"
        if self._file:
            self._file.close()
            said += f", kept in {self._file.name}"
        return f"{said}{f' ({self._trouble})' if self._trouble else ''}\n"


def _display_id(content: bytes) -> str:
    if b'"display_id"' not in content:
        return ""
    transient: Content = json.loads(content).get("transient") or {}
    return str(transient.get("display_id", ""))
