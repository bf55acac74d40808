"""The inside of the stream's GPU messages: one for all, and of the GPUs that pools may use."""

from __future__ import annotations

import asyncio
import json
import subprocess
from typing import Any

import pytest
from pytest_jupyter.jupyter_server import *  # noqa: F403
from traitlets import TraitError
from traitlets.config import Config

from jupyter_dist_server.common.protocol.sampler_messages import InventoryNews, SampleNews
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.server.extension import JupyterDistApp
from jupyter_dist_server.server.mcp.agent_calls import AgentCalls
from jupyter_dist_server.server.stream_handler import Viewer

from ..fake_nvml.build import State
from ..waiting import PATIENCE


@pytest.fixture
def jp_server_config() -> Config:
    return Config({"ServerApp": {"jpserver_extensions": {"jupyter_dist_server": True}}})


def test_every_client_is_sent_the_same_bytes(jp_asyncio_loop: Any, jp_serverapp: Any) -> None:
    """However many look, a message is encoded once, and sampling costs the same."""
    settings = jp_serverapp.web_app.settings
    feed, cells = settings["jupyter_dist_gpus"], settings["jupyter_dist_cells"]

    async def work() -> None:
        news = asyncio.Event()
        viewers = [Viewer(feed, cells, AgentCalls(), news.set) for _ in range(50)]
        for viewer in viewers:
            viewer.look_at(frozenset({"gpus"}))
        while "gpus" not in feed.frames:
            news.clear()
            await news.wait()
        feed.samples.take(1.0, {"utilization": [1] * 8})
        taken = await asyncio.gather(*(viewer.take() for viewer in viewers))
        assert [json.loads(frame)["type"] for frame in taken[0]][:2] == ["gpus", "history"]
        assert json.loads(taken[0][-1])["values"] == {"utilization": [1] * 8}
        for frames in taken:
            assert [id(frame) for frame in frames] == [id(frame) for frame in taken[0]]
        assert await viewers[0].take() == []
        for viewer in viewers:
            viewer.close()
        assert await viewers[0].take() == []

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_who_asks_in_a_row_has_nvml_read_once(
    jp_asyncio_loop: Any, jp_serverapp: Any, fake_nvml: State
) -> None:
    """And not at all while the sampler runs."""
    fake_nvml.write(gpus=2, memory=80 << 30)
    settings = jp_serverapp.web_app.settings
    feed, cells = settings["jupyter_dist_gpus"], settings["jupyter_dist_cells"]

    async def work() -> None:
        seen = await asyncio.gather(*(feed.state.get() for _ in range(5)))
        (inventory,) = {id(one.inventory): one.inventory for one in seen}.values()
        assert len(inventory.gpus) == 2
        assert (await feed.state.get()).inventory is inventory
        news = asyncio.Event()
        viewer = Viewer(feed, cells, AgentCalls(), news.set)
        viewer.look_at(frozenset({"gpus"}))
        while len(feed.telemetry.processes) < 2:
            news.clear()
            await news.wait()
        assert (await feed.state.get()).inventory is feed.telemetry.inventory
        viewer.close()

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_a_process_that_has_ended_since_nvml_was_read_is_not_told_of(
    jp_asyncio_loop: Any, jp_serverapp: Any, fake_nvml: State
) -> None:
    """Its lease is gone by then: it would be taken for a stranger's."""
    feed = jp_serverapp.web_app.settings["jupyter_dist_gpus"]
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        fake_nvml.write(gpus=1, process=f"{process.pid},{2**30},50")

        async def rows() -> tuple[Inventory, list[int]]:
            state = await feed.state.get()
            (found,) = state.processes.values()
            return state.inventory, [row.pid for row in found]

        async def work() -> None:
            inventory, pids = await rows()
            assert pids == [process.pid]
            process.kill()
            process.wait()
            assert await rows() == (inventory, [])

        jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_gpus_that_are_hidden_from_the_server_are_not_told_of(
    jp_asyncio_loop: Any, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-2,GPU-0")
    settings = jp_serverapp.web_app.settings
    feed, cells = settings["jupyter_dist_gpus"], settings["jupyter_dist_cells"]
    gpus = [Gpu(i, f"GPU-{i}", "H100", 1 << 30, f"0000:0{i}:00.0", "9.0") for i in range(4)]
    feed.telemetry.inventory = Inventory(tuple(gpus))
    feed.telemetry.latest = {gpu.uuid: {"utilization": gpu.index} for gpu in gpus}

    async def work() -> None:
        found = await feed.overview()
        assert [gpu["uuid"] for gpu in found["gpus"]] == ["GPU-2", "GPU-0"]
        viewer = Viewer(feed, cells, AgentCalls(), lambda: None)
        viewer.look_at(frozenset({"gpus"}))
        told = [json.loads(frame) for frame in await viewer.take()]
        assert [gpu["uuid"] for gpu in told[0]["inventory"]["gpus"]] == ["GPU-2", "GPU-0"]
        # What has been read for somebody else is there at once, in the same order.
        assert told[-1]["values"] == {"utilization": [2, 0]}
        viewer.close()

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_who_follows_is_told_of_the_gpus_of_all_nodes(
    jp_asyncio_loop: Any,
    jp_serverapp: Any,
    http_server: Any,
    jp_http_port: int,
    jp_auth_header: dict[str, str],
    jp_base_url: str,
    fake_nvml: State,
) -> None:
    """Each node's samples come by themselves, so that they find a row that has begun."""
    fake_nvml.write(gpus=1)
    telemetry = jp_serverapp.web_app.settings["jupyter_dist_gpus"].telemetry
    there = Gpu(0, "GPU-there", "H100", 1 << 30, "", "9.0")

    async def sample() -> None:
        while True:  # the server forgets a node without a pool
            telemetry.hear("n2", InventoryNews(0.0, Inventory((there,))), None)
            telemetry.hear("n2", SampleNews(0.0, {"power": {"GPU-there": 1}}), None)
            await asyncio.sleep(0.2)

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", jp_http_port)
        path = f"{jp_base_url}jupyter-dist/gpus/export.jsonl?follow=1&metrics=power&since=0"
        token = jp_auth_header["Authorization"]
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n\r\n"
        sampling = asyncio.create_task(sample())
        try:
            writer.write(head.encode())
            seen: dict[float, set[str]] = {}
            while sum(len(uuids) == 2 for uuids in seen.values()) < 3:
                line = await reader.readline()
                if line.startswith(b"{"):
                    row = json.loads(line)
                    seen.setdefault(row["time"], set()).add(row["uuid"])
        finally:
            sampling.cancel()
            writer.close()

    jp_asyncio_loop.run_until_complete(asyncio.wait_for(work(), PATIENCE))


def test_the_history_does_not_fill_the_memory() -> None:
    assert JupyterDistApp(history_minutes=240).history_minutes == 240
    with pytest.raises(TraitError, match="history_minutes"):
        JupyterDistApp(history_minutes=241)
