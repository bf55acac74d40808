"""The inside of the stream: what a server keeps for a panel that does not read."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import Any

import pytest
from pytest_jupyter.jupyter_server import *  # noqa: F403
from traitlets.config import Config

from jupyter_dist_server.common.protocol.agents.attachment import Owner
from jupyter_dist_server.placement.new_pool_record import new_record
from jupyter_dist_server.placement.requests.request import PoolRequest
from jupyter_dist_server.pools.pool import Pool
from jupyter_dist_server.server.stream_handler import StreamHandler

from ..waiting import PATIENCE

CHANGES = 400
NOTICE = "x" * 1_000_000
"""Makes a frame so large that the sockets' own buffers cannot hold many of them."""

LIMIT = 3 * len(NOTICE)


@pytest.fixture
def jp_server_config() -> Config:
    return Config({"ServerApp": {"jpserver_extensions": {"jupyter_dist_server": True}}})


def handlers(manager: Any) -> list[StreamHandler]:
    """Return the streams that listen for changes of pools."""
    listeners = [listener.__self__ for listener in manager._listeners]
    return [one for one in listeners if isinstance(one, StreamHandler)]


def buffered(handler: StreamHandler) -> int:
    """Return how many bytes wait in the server's memory for this client."""
    assert handler.ws_connection
    return len(handler.ws_connection.stream._write_buffer)


@pytest.fixture(autouse=True)
def has_started(jp_serverapp: Any) -> None:
    """Tell what a server of these fixtures does not: that it has looked for pools."""
    jp_serverapp.web_app.settings["jupyter_dist_has_adopted"].set()


def test_a_client_that_does_not_read_costs_no_memory(
    jp_asyncio_loop: Any, jp_serverapp: Any, jp_ws_fetch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_dist_server.server.stream_handler.FRAME_INTERVAL", 0)
    manager = jp_serverapp.web_app.settings["jupyter_dist_manager"]

    async def work() -> None:
        # A pool that is never started can be changed as often as we like.
        record = new_record(PoolRequest(num_ranks=1))
        pool = Pool(record, manager._on_change, Owner())
        pool.record.notices = [NOTICE]
        manager.pools[pool.record.id] = pool
        client = await jp_ws_fetch("jupyter-dist", "stream", max_message_size=2**27)
        (handler,) = handlers(manager)
        assert handler.ws_connection
        tcp = handler.ws_connection.stream.socket
        assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1

        most = 0
        for _ in range(CHANGES):
            pool.change()
            for _ in range(5):
                await asyncio.sleep(0)  # lets the handler send what it wants to
            most = max(most, buffered(handler))
            assert len(handler._changed) <= 1
        assert 0 < most < LIMIT

        # A client that reads again gets fewer frames, and the newest state.
        frames = [json.loads(await client.read_message())]
        assert frames[0]["type"] == "pools"
        while frames[-1].get("pool", {}).get("version") != CHANGES:
            frames.append(json.loads(await client.read_message()))
        assert len(frames) < CHANGES / 2
        client.close()

    try:
        jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))
    finally:
        manager.pools.clear()  # the server would wait for the end of a pool that never began


def test_a_client_that_does_not_read_gets_fewer_newer_samples(
    jp_asyncio_loop: Any, jp_serverapp: Any, jp_ws_fetch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_dist_server.server.stream_handler.FRAME_INTERVAL", 0)
    settings = jp_serverapp.web_app.settings
    manager, feed = settings["jupyter_dist_manager"], settings["jupyter_dist_gpus"]

    async def work() -> None:
        client = await jp_ws_fetch("jupyter-dist", "stream", max_message_size=2**27)
        await client.write_message(json.dumps({"watch": ["gpus"]}))
        seen = [json.loads(await client.read_message())]
        while seen[-1]["type"] != "history":  # with the first message of the sampler
            seen.append(json.loads(await client.read_message()))
        (handler,) = handlers(manager)

        most, before = 0, feed.samples.tick
        for change in range(1, CHANGES + 1):
            # A list of processes so long that the sockets' own buffers cannot hold many of them.
            feed._tell("processes", {"gpus": {"GPU-0": [change, NOTICE]}})
            feed.samples.take(change, {"utilization": [change], "fan": [change // CHANGES]})
            for _ in range(5):
                await asyncio.sleep(0)
            most = max(most, buffered(handler))
        assert 0 < most < LIMIT
        assert len(feed.samples._frames) <= 1

        samples = []
        while not samples or samples[-1]["time"] != CHANGES:
            if (frame := json.loads(await client.read_message()))["type"] == "sample":
                samples.append(frame)
        assert len(samples) < CHANGES / 2 < feed.samples.tick - before
        # What has changed in a sample that it did not get is told all the same.
        assert samples[-1]["values"]["utilization"] == [CHANGES]
        assert [frame["values"]["fan"] for frame in samples if "fan" in frame["values"]] == [
            [0],
            [1],
        ]
        client.close()

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_a_client_that_hears_nothing_else_is_told_the_time(
    jp_asyncio_loop: Any, jp_ws_fetch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_dist_server.server.stream_handler.TIME_INTERVAL", 0.1)

    async def work() -> None:
        client = await jp_ws_fetch("jupyter-dist", "stream")
        assert json.loads(await client.read_message())["type"] == "pools"
        before = time.time()
        first, second = [json.loads(await client.read_message()) for _ in range(2)]
        assert before - 1 < first["time"] < second["time"] < time.time()
        assert first["type"] == second["type"] == "time"
        client.close()

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_a_client_that_leaves_is_forgotten(
    jp_asyncio_loop: Any, jp_serverapp: Any, jp_ws_fetch: Any
) -> None:
    manager = jp_serverapp.web_app.settings["jupyter_dist_manager"]

    async def work() -> None:
        client = await jp_ws_fetch("jupyter-dist", "stream")
        await client.read_message()
        (handler,) = handlers(manager)
        client.close()
        with pytest.raises(asyncio.CancelledError):
            await handler._sender  # ends by itself as soon as the server notices
        assert handlers(manager) == []

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))
