"""Whole lines of a job's output, from any place of a file that may be long: none is cut in two."""

from __future__ import annotations

import os

from .log_reader import PIECE, Piece, next_data, open_file

_CHUNK = 2**20
"""Bytes that are searched at once."""


class LineReader:
    """Reads whole lines of a regular file, which may be long, or not exist."""

    def __init__(self, path: str) -> None:
        self._file = open_file(path)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return 0 if self._file is None else os.fstat(self._file).st_size

    def after(self, start: int) -> Piece:
        """Return lines from an offset on; the last one of the file may go on later."""
        size = self.size
        start = self._data(min(max(0, start), size), size)[0]
        data = self._read(start, min(size, start + PIECE))
        if start + len(data) < size and b"\n" in data:
            data = data[: data.rindex(b"\n") + 1]
        return Piece(start, data, size)

    def before(self, end: int) -> Piece:
        """Return the lines that end at an offset; what was cut out of the file is skipped."""
        size = self.size
        end = size if end < 0 else min(end, size)
        start = max(0, end - PIECE)
        if (first := self._data(start, size)[0]) >= end > 0:
            end = min(end, sum(self._data(0, size)))
            start = max(0, end - PIECE)
        elif first > start:
            start = first
        data = self._read(start, end)
        if start and not self._read(start - 1, start).endswith(b"\n") and b"\n" in data[:-1]:
            start += (cut := data.index(b"\n") + 1)
            data = data[cut:]
        return Piece(start, data, size)

    def find(self, text: str, start: int) -> Piece | None:
        """Return the lines from the first one after an offset that contains a text, in any case."""
        wanted, size, place = text.encode().lower(), self.size, max(0, start)
        while place < size:
            place = self._data(place, size)[0]
            chunk = self._read(place, min(size, place + _CHUNK + len(wanted)))
            if (found := chunk.lower().find(wanted)) >= 0:
                return self.after(self._line_start(place + found))
            place += _CHUNK
        return None

    def _line_start(self, place: int) -> int:
        first = max(0, place - PIECE)
        return first + self._read(first, place).rfind(b"\n") + 1

    def _data(self, place: int, size: int) -> tuple[int, int]:
        return (place, 0) if self._file is None else next_data(self._file, place, size)

    def _read(self, start: int, end: int) -> bytes:
        return b"" if self._file is None else os.pread(self._file, max(0, end - start), start)
