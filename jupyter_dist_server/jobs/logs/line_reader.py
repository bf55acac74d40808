"""Whole lines of a job's output, from any place of a file that may be long: none is cut in two."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass

from .log_reader import PIECE

_CHUNK = 2**20
"""Bytes that are searched at once."""


@dataclass(frozen=True)
class Lines:
    """Some lines of a file, as bytes."""

    start: int
    data: bytes
    size: int
    """Bytes that the file has now."""

    @property
    def end(self) -> int:
        """Where the next lines start."""
        return self.start + len(self.data)


class LineReader:
    """Reads lines of a regular file, which need not be there.

    Parameters
    ----------
    path : str
        The file.
    """

    def __init__(self, path: str) -> None:
        self._file: int | None = None
        with suppress(FileNotFoundError):
            # Not waiting: it may be a pipe, of which there is nothing to be read by us.
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        if self._file is not None and not stat.S_ISREG(os.fstat(self._file).st_mode):
            self.close()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return 0 if self._file is None else os.fstat(self._file).st_size

    def after(self, start: int) -> Lines:
        """Return lines from a place on; the last one of the file may go on later."""
        size = self.size
        start = self._data_from(min(max(0, start), size), size)
        data = self._read(start, min(size, start + PIECE))
        if start + len(data) < size and b"\n" in data:
            data = data[: data.rindex(b"\n") + 1]
        return Lines(start, data, size)

    def before(self, end: int) -> Lines:
        """Return the lines that end at a place; what was cut out of the file is skipped."""
        size = self.size
        end = size if end < 0 else min(end, size)
        start = max(0, end - PIECE)
        if (first := self._data_from(start, size)) >= end > 0:
            end = min(end, self._seek(0, os.SEEK_HOLE, size))
            start = max(0, end - PIECE)
        elif first > start:
            start = first
        data = self._read(start, end)
        if start and not self._read(start - 1, start).endswith(b"\n") and b"\n" in data[:-1]:
            start += (cut := data.index(b"\n") + 1)
            data = data[cut:]
        return Lines(start, data, size)

    def find(self, text: str, start: int) -> Lines | None:
        """Return the lines from the first one after a place that has a text, in any case."""
        wanted, size, place = text.encode().lower(), self.size, max(0, start)
        while place < size:
            place = self._data_from(place, size)
            chunk = self._read(place, min(size, place + _CHUNK + len(wanted)))
            if (found := chunk.lower().find(wanted)) >= 0:
                return self.after(self._line_start(place + found))
            place += _CHUNK
        return None

    def _line_start(self, place: int) -> int:
        first = max(0, place - PIECE)
        return first + self._read(first, place).rfind(b"\n") + 1

    def _data_from(self, place: int, size: int) -> int:
        return self._seek(place, os.SEEK_DATA, size)

    def _seek(self, place: int, whence: int, size: int) -> int:
        if self._file is None or place >= size:
            return place
        try:
            return os.lseek(self._file, place, whence)
        except OSError as error:
            # Only a hole is left, or a filesystem without holes.
            return size if error.errno == errno.ENXIO else place

    def _read(self, start: int, end: int) -> bytes:
        return b"" if self._file is None else os.pread(self._file, max(0, end - start), start)
