"""The output limit of a cell, and the file with the complete output."""

from __future__ import annotations

from collections import deque
from typing import BinaryIO

from .display_limit import SHARE, Displays
from .output_files import open_output_file

_SUFFIX = ".txt"
_TAIL = 2000
"""Characters at the end of an output that are shown although its middle was cut."""


class Budget:
    """How much one cell may show; what is over goes to a file that holds all of it.

    Parameters
    ----------
    limit : int
        Characters that are shown.
    name : str
        Of the file.
    largest_display : int
        Bytes that one display may take.
    unending : bool
        Whether nobody knows when the last text comes; the file is then always up to date.

    Attributes
    ----------
    displays : Displays
        The same for what is no text.
    """

    def __init__(self, limit: int, name: str, largest_display: int, unending: bool = False) -> None:
        stem = name.removesuffix(_SUFFIX)
        self.displays = Displays(SHARE * limit, largest_display, f"{stem}-displays.ndjson")
        self._left = self._limit = limit
        self._name = name
        self._largest_display = largest_display
        self._unending = unending
        self._shown: list[str] | None = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._cut = 0
        self._cutting = False
        self._file: BinaryIO | None = None
        self._trouble = ""

    def spend(self, text: str) -> str:
        """Return what of a text is to be shown."""
        if self._cutting:
            self._keep(text)
            self._remember(text)
            return ""
        if len(text) <= self._left:
            self._left -= len(text)
            assert self._shown is not None
            self._shown.append(text)
            return text
        return self._begin_to_cut(text)

    def _begin_to_cut(self, text: str) -> str:
        assert self._shown is not None
        self._cutting = True
        self._file, self._trouble = open_output_file(self._name)
        self._keep(*self._shown, text)
        self._shown = None
        end = text.rfind("\n", 0, self._left) + 1 or self._left
        self._remember(text[end:])
        head = text[:end]
        new_line = "" if head.endswith("\n") or not head else "\n"
        where = f"and continues in {self._file.name}" if self._file else f"({self._trouble})"
        return f"{head}{new_line}… the output is cut here {where}\n"

    def _keep(self, *texts: str) -> None:
        if self._file:
            try:
                self._file.writelines(text.encode(errors="replace") for text in texts)
                if self._unending:
                    self._file.flush()
            except OSError as error:  # the disk is full
                self._trouble = f"the file is not complete: {error}"

    def _remember(self, text: str) -> None:
        self._cut += len(text)
        self._tail.append(text[-_TAIL:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= _TAIL:
            self._tail_size -= len(self._tail.popleft())

    def for_late_output(self) -> Budget:
        """Return one for what threads print after the cell has ended."""
        name = f"{self._name.removesuffix(_SUFFIX)}-later{_SUFFIX}"
        return Budget(self._limit, name, self._largest_display, unending=True)

    def close(self) -> str:
        """End the cell; return the last lines of an output that was cut, and what else was cut."""
        displays = self.displays.close()
        if not self._cutting:
            return displays
        last = "".join(self._tail)[-_TAIL:]
        last = last[last.find("\n", 0, -1) + 1 :]
        cut = f"… {self._cut - len(last):,} characters were cut"
        if self._file:
            try:
                self._file.close()
            except OSError as error:
                self._trouble = f"the file is not complete: {error}"
            cut += f"; the complete output is in {self._file.name}" if not self._trouble else ""
            self._file = None
        return f"{cut}{f' ({self._trouble})' if self._trouble else ''}\n{last}{displays}"
