"""What a rank does with requests that are none of ours: it says so, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_dist_server.common.protocol.jupyter_messages import Message

from ..pool_driver import client_of, request, running
from ..waiting import PATIENCE

MALFORMED = "The request is malformed: "


async def test_malformed_requests_are_answered_and_cost_nothing(tmp_path: Path) -> None:
    async def ask(kind: str, content: Any, channel: str) -> Message:
        replies = await client.ask(kind, content, channel=channel, timeout=PATIENCE)
        (reply,) = replies.values()
        assert reply["header"]["msg_type"].endswith("_reply")
        said: Message = reply["content"]
        return said

    async with running(request(tmp_path, num_ranks=1)) as pool, client_of(pool) as client:
        for channel, kind, content, why in (
            ("control", "dist_cancel_request", {}, "missing required field `msg_id`"),
            ("control", "dist_cancel_request", {"msg_id": 3}, "Expected `str`, got `int`"),
            ("control", "dist_pull_request", {"memory": {"0": "there"}}, "Expected `object`"),
            ("control", "dist_status_request", b"[]", "Expected `object`, got `array`"),
            ("shell", "dist_regroup_request", {"name": "a"}, "missing required field"),
            ("cells", "dist_cell_request", {"code": "1"}, "missing required field"),
        ):
            said = await ask(kind, content, channel)
            assert said["status"] == "error" and said["evalue"].startswith(MALFORMED)
            assert why in said["evalue"]
        cells = client._sockets[0, "cells"]
        for frames in ([b"junk"], [b"<IDS|MSG>", b"unsigned", b"{}", b"{}", b"{}", b"{}"]):
            cells.send_multipart(frames)
        assert (await client.execute("1", [0], lambda *_: None))[0].status == "ok"
        assert (await client.status(PATIENCE))[0].state == "idle"
