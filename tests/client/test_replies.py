"""What is no answer of a rank's is logged and dropped, and the rank counts as silent."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.session import Session

from jupyter_dist_server.client.ranks.rank_connection import RankConnection, rank_silent
from jupyter_dist_server.common.pool_folder import create_folder, endpoint, write_private
from jupyter_dist_server.common.protocol.pool_file import CONFIG
from jupyter_dist_server.common.protocol.ranks.rank_messages import StackReply, StackRequest

from ..pool_driver import pool_file
from ..waiting import PATIENCE

KEY = "a pool's key"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return the private folder of a pool whose one rank is the test itself."""
    where = create_folder()
    config = pool_file(key=KEY)
    write_private(where / CONFIG, config)
    yield where
    shutil.rmtree(where)


async def test_replies_of_another_form_are_dropped(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(content: Any, *, key: str = KEY) -> None:
        session = Session(key=key.encode())
        message = session.msg("dist_stack_reply", content, parent=request)
        rank.send_multipart([client, *session.serialize(message)])

    context = zmq.Context[zmq.Socket[bytes]]()
    rank = context.socket(zmq.ROUTER)
    rank.bind(endpoint(folder, 0, "control"))
    async with RankConnection(folder) as ranks:
        for content in ({}, {"text": 3}, b"[]", b"null", {"status": "error", "evalue": "no"}):
            asking = asyncio.create_task(
                ranks.request(StackRequest(), StackReply, timeout=PATIENCE)
            )
            await asyncio.sleep(0)
            client, *frames = await asyncio.to_thread(rank.recv_multipart)
            _, parts = ranks.session.feed_identities(frames)
            request = ranks.session.deserialize(parts)
            rank.send_multipart([client, b"junk"])
            rank.send_multipart([client, b"<IDS|MSG>", b"", b"junk", b"{}", b"{}", b"{}"])
            answer({"text": "a stranger's"}, key="another key")
            answer(content)
            assert await asking == {}
        assert caplog.text.count("The dist_stack_reply of rank 0 cannot be used") == 5
        asking = asyncio.create_task(ranks.request(StackRequest(), StackReply, timeout=PATIENCE))
        await asyncio.sleep(0)
        client, *frames = await asyncio.to_thread(rank.recv_multipart)
        request = ranks.session.deserialize(ranks.session.feed_identities(frames)[1])
        answer({"text": "here"})
        assert (await asking)[0].text == "here"
    rank.close(linger=0)
    context.term()


def test_a_rank_that_gets_no_processor_is_not_to_be_replaced() -> None:
    starved = rank_silent({1: "starved"}, 4)
    assert "waiting for a processor" in starved.message
    assert "restart" not in starved.hint and "%%rank 0,2-3" in starved.hint
    assert "%dist_restart --ranks 0-1" in rank_silent({0: "stuck", 1: "starved"}, 4).hint
