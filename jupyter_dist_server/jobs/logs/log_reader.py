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


@dataclass(frozen=True)
class Piece:
    """A part of a file."""

    start: int
    data: bytes
    size: int
    """Bytes that the file has now."""
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
