"""The agent's control socket: who reads slowly is told less, and is not dropped."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.agent.control_socket import ControlSocket
from jupyter_dist_server.common.protocol.agents.agent_messages import (
    Commands,
    LogLines,
    Ping,
    Refused,
    decode_news,
)

CHANGES = 300
BIG = "x" * 50_000


def version_of(line: bytes) -> int:
    news = decode_news(line)
    assert isinstance(news, LogLines)
    return int(news.lines[0])


async def test_a_client_that_does_not_read_gets_the_newest_snapshot_later(tmp_path: Path) -> None:
    async def read(reader: asyncio.StreamReader) -> int:
        line = b""
        while not line.endswith(b"\n"):
            piece = await reader.read(1 << 14)
            assert piece, "it was dropped"
            line += piece
        return version_of(line.splitlines()[-1])

    version = 0
    gone: list[Any] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    served = ControlSocket(
        listener, lambda: LogLines([str(version), BIG]), lambda *_: None, gone.append
    )
    await served.open()
    # Its reader pauses at 128 KiB, like that of a server which was stopped.
    slow, writer = await asyncio.open_unix_connection(tmp_path / "s", limit=1 << 16)
    await asyncio.sleep(0)
    quick, other = await asyncio.open_unix_connection(tmp_path / "s", limit=1 << 20)
    await quick.readline()
    for version in range(1, CHANGES + 1):
        served.broadcast()
        assert version_of(await quick.readline()) == version
        for client in served._writers:
            assert client.transport.get_write_buffer_size() < 4 * len(BIG)
    assert gone == []

    seen = [await read(slow)]
    while seen[-1] < CHANGES:
        seen.append(await read(slow))
    assert seen == sorted(set(seen)) and len(seen) < CHANGES / 2

    version += 1
    served.broadcast()
    closing = asyncio.create_task(served.close())
    assert [await read(slow), await read(quick)] == [CHANGES + 1] * 2
    await closing
    writer.close()
    other.close()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"not JSON", "malformed"),
        (b"[]", "Expected `object`"),
        (b'{"do": "dance"}', "Invalid value 'dance'"),
        (b'{"ranks": [0]}', "missing required field `do`"),
        (b'{"do": "interrupt", "ranks": "all"}', "Expected `array`, got `str` - at `$.ranks`"),
        (
            b'{"do": "attach", "attachment": {"as": "kernel", "pid": "1"}}',
            "got `str` - at `$.attachment.pid`",
        ),
        (b'{"do": "ping", "more": ' + b"[" * 20_000 + b"]" * 20_000 + b"}", "nested"),
        (b'{"do": "log", "rank": ' + b"1" * 100_000 + b"}", "too long"),
    ],
)
async def test_what_is_no_command_is_refused_with_the_reason(
    tmp_path: Path, line: bytes, why: str
) -> None:
    """Nobody else is disturbed, and whoever said it may go on."""

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    obeyed: list[Commands] = []
    served = ControlSocket(
        listener,
        lambda: LogLines([]),
        lambda _, command: obeyed.append(command),
        lambda _: None,
    )
    await served.open()
    reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
    await reader.readline()
    writer.write(line + b"\n")
    refused = decode_news(await reader.readline())
    assert isinstance(refused, Refused) and why in refused.message
    if why != "too long":
        writer.write(b'{"do": "ping"}\n')
        while not obeyed:
            await asyncio.sleep(0)
        assert obeyed == [Ping()]
    writer.close()
    await served.close()
