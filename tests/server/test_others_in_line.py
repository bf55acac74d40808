"""Who else waits on this machine: the stream tells of that as of own jobs."""

from __future__ import annotations

import json

import pytest

from jupyter_dist_server.jobs.schedule.board import JOBS, Board
from jupyter_dist_server.jobs.schedule.wants import Want

from .client import Client
from .stream import connect, read_until


@pytest.mark.usefixtures("leases")
async def test_the_stream_tells_when_others_begin_to_wait(gpu_client: Client) -> None:
    stream = await connect(gpu_client)
    await stream.write_message(json.dumps({"watch": ["jobs"]}))
    for _ in ("what there is", "what came before it was watched"):
        await read_until(stream, lambda frame: frame["type"] == "jobs")
    board = Board(JOBS, "another")
    board.show([Want("1", "me", 1000.0, cpus=1, name="theirs")])
    await read_until(stream, lambda frame: frame["type"] == "jobs")
    assert "theirs" in [row["name"] for row in gpu_client.get("queue")["rows"]]
    board.close()
    await read_until(stream, lambda frame: frame["type"] == "jobs")
    stream.close()
