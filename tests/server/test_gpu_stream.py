"""GPUs on the stream: the past at once, then what changes, for all who look at the same cost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from tornado.websocket import WebSocketClientConnection

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease

from ..fake_nvml.build import State
from ..server_driver import Server
from .client import Client
from .conftest import samplers
from .stream import Frame, connect, read, read_until

MIB, GIB = 1 << 20, 1 << 30
BYTES_PER_SAMPLE = 600
"""What a sample of eight busy GPUs may cost each client."""


def kind(name: str) -> Callable[[Frame], bool]:
    """Return a condition: the frame is of this type."""
    return lambda frame: frame["type"] == name


def says(metric: str, value: Any) -> Callable[[Frame], bool]:
    """Return a condition: the frame is a sample in which the first GPU's metric has this value."""
    return lambda f: f["type"] == "sample" and f["values"].get(metric, [None])[0] == value


@asynccontextmanager
async def look(client: Client, *what: str) -> AsyncIterator[WebSocketClientConnection]:
    """Open the stream and say what we look at."""
    stream = await connect(client)
    try:
        assert (await read(stream))["type"] == "pools"
        await stream.write_message(json.dumps({"watch": what}))
        yield stream
    finally:
        stream.close()


async def test_whoever_looks_gets_all_that_is_known_and_then_changes(
    gpu_client: Client, gpus: State
) -> None:
    async with look(gpu_client, "gpus") as stream:
        first = await read(stream)
        assert [gpu["index"] for gpu in first["inventory"]["gpus"]] == list(range(8))
        assert first["stale_since"] is first["trouble"] is None
        assert (await read(stream))["type"] == "history"
        whole = (await read_until(stream, kind("sample")))[-1]["values"]
        assert whole["utilization"] == [50] * 8
        assert whole["memory_used"] == [8.59e9] * 8  # 8 GiB, as exactly as a chart can show it
        assert not whole.keys() & {"memory_free", "memory_total", "energy", "pcie_tx"}

        # While nothing changes, only the time goes on.
        still = [await read(stream) for _ in range(3)]
        # What cannot be read is told after the first sample.
        still = [f for f in still if not (f["type"] == "gpus" and f.get("errors"))]
        assert {frame["type"] for frame in still} <= {"sample", "usage", "processes"}
        samples = [frame for frame in still if frame["type"] == "sample"]
        assert all("utilization" not in frame["values"] for frame in samples)

        gpus.update(**{"0.utilization": 77})
        change = (await read_until(stream, says("utilization", 77)))[-1]
        assert change["values"]["utilization"] == [77, *[50] * 7]
        assert "memory_used" not in change["values"]


async def test_a_panel_that_is_opened_later_shows_the_past(gpu_client: Client, gpus: State) -> None:
    async with look(gpu_client, "gpus") as first:
        gpus.update(utilization=66)
        await read_until(first, says("utilization", 66))
        begun = time.time()
        gpus.update(utilization=99)
        await read_until(first, says("utilization", 99))
        # The chart's steps are 3 s long.
        while time.time() < begun + 3.5:
            await read(first)

        async with look(gpu_client, "gpus") as second:
            frames = await read_until(second, kind("sample"))
        assert [frame["type"] for frame in frames[:2]] == ["gpus", "history"]
        history, newest = frames[1], frames[-1]
        series = history["gpus"][frames[0]["inventory"]["gpus"][0]["uuid"]]
        assert len(history["times"]) == len(series["utilization"]) >= 2
        assert max(value or 0 for value in series["utilization"]) > 66
        assert newest["values"]["utilization"] == [99] * 8


async def test_the_sampler_goes_when_the_last_client_is_hidden_or_gone(
    gpu_server: Server, gpu_client: Client
) -> None:
    async with look(gpu_client, "gpus") as hidden, look(gpu_client, "gpus") as gone:
        await read_until(hidden, kind("sample"))
        await read_until(gone, kind("sample"))
        (sampler,) = samplers(gpu_server)  # one for both
        gone.close()
        await hidden.write_message('{"watch": []}')
        await asyncio.to_thread(sampler.wait, 20)
        assert samplers(gpu_server) == []

        await hidden.write_message('{"watch": ["gpus"]}')
        await read_until(hidden, kind("gpus"))  # samples that were on their way may come first
        again = await read_until(hidden, kind("sample"))
        assert again[0]["type"] == "history"
        assert again[-1]["values"]["utilization"] == [50] * 8


async def test_links_are_for_those_who_look_at_them(gpu_client: Client, gpus: State) -> None:
    gpus.update(pcie_tx=5000, slow_pcie=1)
    async with look(gpu_client, "gpus") as plain, look(gpu_client, "gpus", "pcie") as detailed:
        # They are read one after the other, so that a sample may have some of them only.
        await read_until(detailed, lambda f: f.get("values", {}).get("pcie_tx") == [5e6] * 8)
        gpus.update(utilization=33)
        frames = await read_until(plain, says("utilization", 33))
        assert not any("pcie_tx" in frame.get("values", {}) for frame in frames)


@pytest.mark.parametrize("what", [("gpus",), ("gpus", "pcie")])
async def test_a_sample_of_eight_busy_gpus_is_small(
    gpu_client: Client, gpus: State, what: tuple[str, ...]
) -> None:
    """Everything that changes in training does so here, on each GPU and all the time."""
    period = 0
    for gpu in range(8):
        for metric, low, high in (
            ("utilization", 10, 100),
            ("memory_utilization", 10, 100),
            ("memory_used", 10 * GIB, 80 * GIB),
            ("temperature", 40, 90),
            ("power", 100_000, 700_000),
            ("clock_sm", 1000, 1980),
            ("gpm_sm", 10, 100),
            ("gpm_tensor", 10, 100),
            ("gpm_dram", 10, 100),
            ("pcie_tx", 1_000_000, 50_000_000),
            ("pcie_rx", 1_000_000, 50_000_000),
        ):
            period += 1
            gpus.values |= {f"{gpu}.{metric}": f"sine({2 + period / 7},{low},{high})"}
    gpus.update(gpm=1, slow_pcie=1)
    async with look(gpu_client, *what) as stream:
        await read_until(stream, lambda f: len(f.get("values", ())) > 8)
        ticks, sizes, seen = 0, [], set()
        while ticks < 21:  # one whole round of the slowest metrics
            message = await stream.read_message()
            if (frame := json.loads(message))["type"] == "sample":
                # The rates of PCIe come later in the same tick, on a busy machine in the next one.
                ticks += "utilization" in frame["values"]
                sizes.append(len(message))
                seen |= frame["values"].keys()
        assert {"temperature", "power", "clock_sm", "sm_active", "tensor_active"} <= seen
        assert ("pcie_tx" in seen) == ("pcie" in what)
        assert max(sizes) <= BYTES_PER_SAMPLE, sizes
        assert sum(sizes) <= ticks * BYTES_PER_SAMPLE, sizes


async def test_processes_are_told_with_who_they_are(gpu_client: Client, gpus: State) -> None:
    kernel = gpu_client.raw("POST", "api/kernels", body={"name": "python3"}).body["id"]
    pid = gpu_client.pid_of(kernel)
    gpus.update(**{"1.process": [f"{pid},{3 * GIB},40", f"{os.getpid()},{GIB},5"]})

    def pids(frame: Frame) -> list[int]:
        by_gpu = frame["gpus"].values() if frame["type"] == "processes" else ()
        return [row["pid"] for rows in by_gpu for row in rows]

    async with look(gpu_client, "gpus") as stream:
        frames = await read_until(stream, lambda f: pid in pids(f))
        first, second = next(rows for rows in frames[-1]["gpus"].values() if rows)
        assert (first["pid"], first["memory"], first["sm"]) == (pid, 3 * GIB, 40)
        assert first["who"] == {"kind": "kernel", "kernel_id": kernel, "name": "python3"}
        assert second["who"] == {"kind": "mine"}
    gpu_client.raw("DELETE", f"api/kernels/{kernel}")


async def test_a_sampler_that_dies_is_said_to_be_stale_and_comes_back(
    gpu_server: Server, gpu_client: Client
) -> None:
    before = time.time()
    async with look(gpu_client, "gpus") as stream:
        await read_until(stream, kind("sample"))
        (sampler,) = samplers(gpu_server)
        sampler.send_signal(signal.SIGKILL)
        is_stale = lambda f: f["type"] == "gpus" and f["stale_since"]  # noqa: E731
        stale = (await read_until(stream, is_stale))[-1]
        assert before - 1 < stale["stale_since"] <= time.time()
        assert stale["trouble"]
        assert len(stale["inventory"]["gpus"]) == 8
        well = lambda f: f["type"] == "gpus" and f["stale_since"] is None  # noqa: E731
        await read_until(stream, well)
        await read_until(stream, kind("sample"))
        assert samplers(gpu_server) != [sampler]


async def test_errors_are_told_for_each_metric(gpu_client: Client, gpus: State) -> None:
    gpus.update(**{"2.power": "!permission"})
    async with look(gpu_client, "gpus") as stream:
        first = (await read_until(stream, kind("gpus")))[-1]
        second, third = (gpu["uuid"] for gpu in first["inventory"]["gpus"][1:3])

        def tells(frame: Frame) -> bool:
            return "power" in frame.get("errors", {}).get(third, {})

        # The first frame may tell it already, and is then the only one to do so.
        told = first if tells(first) else (await read_until(stream, tells))[-1]
        assert told["errors"][third]["power"] == "no permission"
        assert "power" not in told["errors"].get(second, {})


async def test_what_ranks_use_is_told_where_there_is_no_gpu(client: Client) -> None:
    pool = client.start(num_ranks=2)

    try:
        async with look(client, "gpus") as stream:
            frames = await read_until(stream, lambda f: pool["id"] in f.get("pools", ()))
            ranks = frames[-1]["pools"][pool["id"]]
            assert [usage["pid"] for usage in ranks] == [rank["pid"] for rank in pool["ranks"]]
            assert all(usage["memory"] > 10 * MIB for usage in ranks)
            assert all(usage["gpu_uuid"] is None for usage in ranks)
            (first,) = [frame for frame in frames if frame["type"] == "gpus"] or [
                await read(stream)
            ]
            assert first["inventory"]["gpus"] == [] and first["inventory"]["reason"]
    finally:
        client.call("DELETE", f"pools/{pool['id']}?wait=1")


@pytest.mark.usefixtures("leases")
async def test_who_holds_leases_is_told(gpu_client: Client) -> None:
    async with look(gpu_client, "gpus") as stream:
        first = (await read_until(stream, kind("gpus")))[-1]
        uuid = first["inventory"]["gpus"][3]["uuid"]
        assert first["leases"] == {}
        who = Leaseholder(pool="p1", pid=os.getpid(), since=5.0, notebook="a.ipynb", host="h")
        with closing(Lease.take([uuid], who)):

            def is_named(frame: dict[str, Any]) -> bool:  # the lock comes before the name
                return any(lease["user"] for lease in frame.get("leases", {}).values())

            held = (await read_until(stream, is_named))[-1]["leases"]
            assert held.keys() == {uuid}
            assert held[uuid]["notebook"] == "a.ipynb"
        await read_until(stream, lambda f: f.get("leases") == {})
