"""What programs write to a rank's files in memory, also to those that they empty first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.rank.output.capture import MemoryFile

from ..pool_driver import client_of, linux, request, running, text_of

pytestmark = linux


@pytest.fixture
def file() -> Iterator[MemoryFile]:
    """Return a file that is empty."""
    file = MemoryFile("test")
    yield file
    os.close(file.descriptor)
    os.close(file.content)


def reopened(file: MemoryFile) -> int:
    """Open it as a shell does for ``> /dev/stderr``."""
    return os.open(f"/dev/fd/{file.descriptor}", os.O_WRONLY | os.O_TRUNC)


@pytest.mark.parametrize("text", [b"as long\n", b"short\n", b"\n", b"longer than that\n"])
def test_what_is_written_to_an_emptied_file_is_read(file: MemoryFile, text: bytes) -> None:
    assert not file.has_news and file.read_new() == b""
    os.write(file.descriptor, b"before\n")
    assert file.has_news and file.read_new() == b"before\n"
    for _ in range(3):
        opened = reopened(file)
        os.write(opened, text)
        assert file.has_news and file.read_new() == text
        os.write(opened, b"more\n")
        os.close(opened)
        os.write(file.descriptor, b"appended\n")
        assert file.has_news and file.read_new() == b"more\nappended\n"
        assert not file.has_news and file.read_new() == b""


def test_an_empty_file_has_no_news(file: MemoryFile) -> None:
    os.write(file.descriptor, b"before\n")
    file.read_new()
    opened = reopened(file)
    assert file.read_new() == b"" and not file.has_news
    os.write(opened, b"after\n")
    assert file.has_news and file.read_new() == b"after\n" and not file.has_news
    os.close(opened)


def test_much_that_was_read_and_freed_does_not_hide_what_comes_anew(file: MemoryFile) -> None:
    os.write(file.descriptor, b"x" * 5_000_000)
    assert len(file.read_new()) == 5_000_000
    opened = reopened(file)
    os.write(opened, b"y" * 6_000_000)
    assert file.read_new() == b"y" * 6_000_000
    os.close(opened)


async def test_what_shells_write_to_dev_stdout_and_stderr_is_shown_in_order(tmp_path: Path) -> None:
    code = """import subprocess
for i in range(5):
    print("before", i, flush=True)
    subprocess.run("echo file %d > /dev/stdout" % i, shell=True)
    subprocess.run("echo tee %d | tee /dev/stderr > /dev/null" % i, shell=True)
print("end")
"""
    shown = {"stdout": "", "stderr": ""}

    def on_output(_: int, kind: str, content: dict[str, str]) -> None:
        if kind == "stream":
            shown[content["name"]] += content["text"]

    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        replies = await client.execute(code, [0], on_output)
    assert replies[0].status == "ok"
    assert shown["stdout"] == "".join(f"before {i}\nfile {i}\n" for i in range(5)) + "end\n"
    assert shown["stderr"] == "".join(f"tee {i}\n" for i in range(5))


async def test_streams_are_used_as_in_any_program(tmp_path: Path) -> None:
    code = """import io, sys
print("text")
sys.stdout.buffer.write("bytes ü\\n".encode())
sys.stdout.reconfigure(line_buffering=True)
print("after", sys.stdout.line_buffering)
for _ in range(2):  # the wrapper closes what it wraps
    with io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8") as wrapper:
        wrapper.write("wrapped\\n")
sys.stdout.buffer.flush()
"""
    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        assert await text_of(client, code) == "text\nbytes ü\nafter True\nwrapped\nwrapped\n"
