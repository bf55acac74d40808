"""What a job has printed: a file, read in bounded pieces, whatever happens to it."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

PIECE = 65536
"""Bytes that are read at once."""
_CHUNK = 2**20
"""Bytes that are searched at once."""


@dataclass(frozen=True)
class Piece:
    """A part of a file."""

    start: int
    data: bytes
    size: int
    replaced: bool = False
    """Whether the file is another one than before, or was emptied."""

    @property
    def end(self) -> int:
        """Where the next piece starts."""
        return self.start + len(self.data)


class LogReader:
    """Reads on where it was, also in a file that replaces the first, which need not exist yet.

    It starts at an offset, from the end if negative.
    """

    def __init__(self, path: str, start: int = 0) -> None:
        self.path = path
        self.place = start
        self.is_gone = False
        """Whether the file existed, and does not any more."""
        self._file: tuple[int, int] | None = None

    def read(self) -> Piece | None:
        """Return the next piece, empty at the end; `None` if there is no file."""
        if (file := open_file(self.path)) is None:
            self.is_gone = self._file is not None
            return None
        try:
            about = os.fstat(file)
            identity = about.st_dev, about.st_ino
            if self.place < 0:
                self.place = max(0, about.st_size + self.place)
            # A new file may have the number of the one that was deleted.
            is_other = self.is_gone or self._file not in (None, identity)
            if replaced := is_other or about.st_size < self.place:
                self.place = 0
            self._file, self.is_gone = identity, False
            start, length = next_data(file, self.place, about.st_size)
            data = os.pread(file, min(PIECE, length), start)
            self.place = start + len(data)
            return Piece(start, data, about.st_size, replaced)
        finally:
            os.close(file)

    def __iter__(self) -> Iterator[bytes]:
        """Yield what there is now, from where it was."""
        while (piece := self.read()) and piece.data:
            yield piece.data


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


def open_file(path: str) -> int | None:
    """Open a regular file; `None` if there is none."""
    try:
        # Not waiting: it may be a pipe, of which there is nothing to be read by us.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def next_data(file: int, place: int, size: int) -> tuple[int, int]:
    """Return where data follows an offset, and how much: what was cut out is a hole."""
    try:
        start = os.lseek(file, place, os.SEEK_DATA)
        length = os.lseek(file, start, os.SEEK_HOLE) - start
    except OSError as error:
        if error.errno != errno.ENXIO:  # a filesystem without holes
            return place, max(0, size - place)
        # No data from here on; but some filesystems call a hole what is only in memory yet.
        there = os.pread(file, PIECE, place)
        return (place, len(there)) if there.strip(b"\0") else (max(place, size), 0)
    return start, length


def text_of(piece: Piece) -> tuple[str, int]:
    """Return a piece as text, and where the next one starts: no character is cut in two."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(piece.data)
    left = len(decoder.getstate()[0])
    if left == len(piece.data):  # the file ends within a character
        return decoder.decode(b"", final=True), piece.end
    return text, piece.end - left


def fold(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out what a terminal would overwrite: of a progress bar, the last state remains.

    A line is kept back until it is complete, but no more of it than one piece.
    """
    held = b""
    for piece in pieces:
        *lines, last = (held + piece).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r").rpartition(b"\r")[2] + b"\n"
        held = last.rstrip(b"\r").rpartition(b"\r")[2] + b"\r" * last.endswith(b"\r")
        if len(held) > PIECE:
            yield held
            held = b""
    yield held.rstrip(b"\r")
