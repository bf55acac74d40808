"""The output limit of a cell, for text and for displays, and the files with all that was cut."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from ...common.protocol.jupyter_messages import Content
from ...common.units import format_bytes

_SUFFIX = ".txt"
_TAIL = 2000  # characters at the end of an output that are shown although its middle was cut
_KEEP_FILES = 7 * 24 * 3600.0
"""Seconds for which a file stays."""
SHARE = 10
"""Bytes of displays for each character of text in the limit."""
REPLACED = 10
"""How often the limit may be sent, of displays that replace each other."""


class _File:
    """A file of cut output in Jupyter's data folder; `trouble` says what is wrong with it."""

    def __init__(self, name: str) -> None:
        self._file = None
        self.trouble = self.name = ""
        folder = Path(jupyter_data_dir(), "dist-output")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for old in folder.iterdir():
                with contextlib.suppress(FileNotFoundError):  # another rank was quicker
                    if old.stat().st_mtime < time.time() - _KEEP_FILES:
                        old.unlink()
            self._file = open(folder / name, "wb")  # noqa: SIM115
            self.name = self._file.name
        except OSError as error:
            self.trouble = f"the rest cannot be saved: {error}"

    def write(self, *pieces: bytes, flush: bool) -> None:
        if self._file:
            with self._noting_trouble():  # the disk may be full
                self._file.writelines(pieces)
                if flush:
                    self._file.flush()

    def close(self) -> None:
        if self._file:
            with self._noting_trouble():
                self._file.close()

    @contextlib.contextmanager
    def _noting_trouble(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.trouble = f"the file is not complete: {error}"


class Displays:
    """Limits what one cell displays; the rest goes to a file, as notebook outputs, one a line.

    A display that replaces another one, by an update or after ``clear_output``, takes over its
    share. All the same, the cell may not send without end, as its reader may have stopped.
    """

    def __init__(self, limit: int, largest: int, name: str) -> None:
        self._largest = largest
        self._left = self._limit = limit
        self._to_send = REPLACED * limit
        self._name = name
        self._sizes: dict[str, int] = {}  # by display id, of those that can be updated
        self._cut = 0
        self._count = 0
        self._file: _File | None = None

    def clear(self) -> None:
        """Note that nothing is shown any more."""
        self._left = self._limit
        self._sizes.clear()

    def admits(self, content: bytes) -> bool:
        """Tell whether to show a display, the content of its message; otherwise keep it."""
        place = _display_id(content)
        grows = len(content) - self._sizes.get(place, 0)
        if grows > self._left or len(content) > min(self._largest, self._to_send):
            self._file = self._file or _File(self._name)
            self._file.write(content, b"\n", flush=True)
            self._cut += len(content)
            self._count += 1
            return False
        self._left -= grows
        self._to_send -= len(content)
        if place:
            self._sizes[place] = len(content)
        return True

    @property
    def begins_to_cut(self) -> str:
        """What is shown after the first display that was cut; nothing after later ones."""
        if self._count != 1 or not self._file:
            return ""
        where = f"is in {self._file.name}" if self._file.name else f"is lost ({self._file.trouble})"
        return f"… a display of {format_bytes(self._cut)} was cut here; it {where}\n"

    def close(self) -> str:
        """End the cell; return what to show about displays that were cut."""
        if not self._file:
            return ""
        self._file.close()
        kept = f", kept in {self._file.name}" if self._file.name else ""
        trouble = f" ({self._file.trouble})" if self._file.trouble else ""
        return f"… {format_bytes(self._cut)} of displays cut{kept}{trouble}\n"


def _display_id(content: bytes) -> str:
    if b'"display_id"' not in content:
        return ""
    transient: Content = json.loads(content).get("transient") or {}
    return str(transient.get("display_id", ""))


class Budget:
    """Limits the text and displays of one cell; a file has all of the text if some was cut.

    If `unending`, text may come at any time, so the file is always up to date.
    """

    def __init__(self, limit: int, name: str, largest_display: int, unending: bool = False) -> None:
        stem = name.removesuffix(_SUFFIX)
        self.displays = Displays(SHARE * limit, largest_display, f"{stem}-displays.ndjson")
        self._left = self._limit = limit
        self._name = name
        self._largest_display = largest_display
        self._unending = unending
        self._shown: list[str] = []
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._cut = 0
        self._file: _File | None = None

    def spend(self, text: str) -> str:
        """Return the part of a text that is shown."""
        if self._file:
            self._keep(self._file, [text])
            self._remember(text)
            return ""
        if len(text) <= self._left:
            self._left -= len(text)
            self._shown.append(text)
            return text
        self._file = _File(self._name)
        self._keep(self._file, [*self._shown, text])
        self._shown.clear()
        end = text.rfind("\n", 0, self._left) + 1 or self._left
        self._remember(text[end:])
        head = text[:end]
        new_line = "" if head.endswith("\n") or not head else "\n"
        where = f"and continues in {self._file.name}" if self._file.name else ""
        where = where or f"({self._file.trouble})"
        return f"{head}{new_line}… the output is cut here {where}\n"

    def _keep(self, file: _File, texts: Iterable[str]) -> None:
        file.write(*(text.encode(errors="replace") for text in texts), flush=self._unending)

    def _remember(self, text: str) -> None:
        self._cut += len(text)
        self._tail.append(text[-_TAIL:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= _TAIL:
            self._tail_size -= len(self._tail.popleft())

    def for_late_output(self) -> Budget:
        """Return a budget for what threads print after the cell has ended."""
        name = f"{self._name.removesuffix(_SUFFIX)}-later{_SUFFIX}"
        return Budget(self._limit, name, self._largest_display, unending=True)

    def close(self) -> str:
        """End the cell; return the last lines of an output that was cut, and what else was cut."""
        displays = self.displays.close()
        if not self._file:
            return displays
        last = "".join(self._tail)[-_TAIL:]
        last = last[last.find("\n", 0, -1) + 1 :]
        self._file.close()
        trouble = self._file.trouble
        rest = f" ({trouble})" if trouble else f"; the complete output is in {self._file.name}"
        return f"… {self._cut - len(last):,} characters were cut{rest}\n{last}{displays}"
