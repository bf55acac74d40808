"""Output that is one long line of anything: it is read in bounded pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.log_reader import PIECE, LineReader, LogReader, fold, text_of

SIZE = 64 << 20


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("log") / "log"
    block = os.urandom(1 << 20).translate(None, b"\n\r")
    with path.open("wb") as file:
        file.write(b"first\n")
        while file.tell() < SIZE:
            file.write(block)
        file.write(b"\nlast\n")
    yield path
    path.unlink()


def test_a_long_line_is_followed_in_pieces(log: Path) -> None:
    reader, read = LogReader(str(log)), 0
    while (piece := reader.read()) and piece.data:
        assert piece.start == read and len(piece.data) <= PIECE
        text, reader.place = text_of(piece)
        assert 0 < len(text) <= len(piece.data)
        read = reader.place
    assert read == log.stat().st_size
    folded = 0
    for part in fold(LogReader(str(log))):
        assert len(part) <= 2 * PIECE
        folded += len(part)
    assert folded == read


def test_a_long_line_is_paged_and_searched_in_pieces(log: Path) -> None:
    with closing(LineReader(str(log))) as reader:
        last = reader.before(-1)
        assert last.end == reader.size and len(last.data) <= PIECE
        assert last.data.endswith(b"last\n")
        middle = reader.before(SIZE // 2)
        assert middle.end == SIZE // 2 and 0 < len(middle.data) <= PIECE
        assert len(reader.after(SIZE // 2).data) <= PIECE
        found = reader.find("LAST", 0)
        assert found and b"last\n" in found.data and len(found.data) <= PIECE
        assert reader.find("not there", 0) is None


def test_a_hole_at_the_end_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("first\n")
    os.truncate(path, 1 << 40)
    with closing(LineReader(str(path))) as reader:
        assert reader.before(-1).data.startswith(b"first\n")
        assert reader.find("not there", 0) is None
    follower = LogReader(str(path))
    assert (piece := follower.read()) and piece.data.startswith(b"first\n")
    assert (piece := follower.read()) and piece.data == b"" and piece.start == piece.size
