"""The agent's control socket: who reads slowly is told less, and is not dropped."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

from jupyter_dist_server.agent.control_socket import ControlSocket

CHANGES = 300
BIG = "x" * 50_000


async def test_a_client_that_does_not_read_gets_the_newest_snapshot_later(tmp_path: Path) -> None:
    async def read(reader: asyncio.StreamReader) -> int:
        line = b""
        while not line.endswith(b"\n"):
            piece = await reader.read(1 << 14)
            assert piece, "it was dropped"
            line += piece
        found: int = json.loads(line.splitlines()[-1])["version"]
        return found

    version = 0
    gone: list[Any] = []
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    served = ControlSocket(
        listener, lambda: {"version": version, "text": BIG}, lambda *_: None, gone.append
    )
    await served.open()
    # Its reader pauses at 128 KiB, like that of a server which was stopped.
    slow, writer = await asyncio.open_unix_connection(tmp_path / "s", limit=1 << 16)
    await asyncio.sleep(0)
    quick, other = await asyncio.open_unix_connection(tmp_path / "s", limit=1 << 20)
    await quick.readline()
    for version in range(1, CHANGES + 1):
        served.broadcast()
        assert json.loads(await quick.readline())["version"] == version
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
