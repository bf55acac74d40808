"""What it costs to watch eight GPUs: ``make bench-telemetry`` prints tables.

A real server samples a stand-in for NVIDIA's library, in which every value moves, and real clients
of its stream look on. What the driver itself costs is measured where there is one, by
``pytest -m gpu``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.fake_nvml.build import State, build
from tests.server_driver import Server

from . import report
from .goals import Bound, Columns, Row
from .loop_delay import PAUSE

ROOT = Path(__file__).resolve().parent.parent
GPUS = 8
CROWD = 50

_CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
c.ServerApp.extra_services = ["benchmarks.loop_delay"]
c.JupyterDistApp.sample_interval = {{interval}}
c.JupyterDistApp.sampler_linger = 0.0
"""

ROWS = (
    Row("sampler_cpu", "sampler, CPU in % of a core", (Bound(1),)),
    Row("sampler_ratio", f"CPU for {CROWD} clients ÷ for one", (Bound(1.25),)),
    Row("p99_above_idle", f"event loop p99 delay with {CROWD} clients − idle, ms", (Bound(5),)),
    Row("bytes", f"bytes of the largest sample for {GPUS} GPUs", (Bound(600),)),
)


@dataclass
class Watch:
    """What was measured while so many clients looked."""

    clients: int
    sampler_cpu: float = 0.0
    """Percent of a core."""
    server_cpu: float = 0.0
    delays: list[float] = field(default_factory=list)
    """Of the server's event loop, in milliseconds."""
    sizes: list[int] = field(default_factory=list)
    """Bytes of each sample that a client got."""

    def delay(self, percent: int) -> float:
        return statistics.quantiles(self.delays, n=100)[percent - 1]

    def delay_of_a_second(self) -> float:
        """Return the longest delay of each second, their median: what a sample costs at once."""
        longest: dict[int, float] = {}
        passed = 0.0
        for delay in self.delays:
            passed += PAUSE + delay / 1e3
            longest[int(passed)] = max(delay, longest.get(int(passed), 0.0))
        return statistics.median(longest.values())


def busy_gpus() -> dict[str, object]:
    """Return a state of the fake NVML in which every GPU works, and every value moves."""
    values: dict[str, object] = {"gpus": GPUS, "name": "NVIDIA H100 80GB HBM3", "memory": 80 << 30}
    values |= {
        "gpm": 1,
        "nvlinks": 18,
        "nvlink_tx": "rate(40000000)",
        "nvlink_rx": "rate(30000000)",
    }
    for gpu in range(GPUS):
        curves = {
            "utilization": (7, 0, 100),
            "memory_utilization": (9, 0, 80),
            "memory_used": (31, 1 << 30, 70 << 30),
            "power": (11, 90_000, 690_000),
            "clock_sm": (13, 345, 1980),
            "temperature": (67, 35, 83),
            "gpm_sm": (7, 0, 98),
            "gpm_tensor": (7, 0, 61),
            "gpm_dram": (9, 0, 77),
        }
        for name, (period, low, high) in curves.items():
            values[f"{gpu}.{name}"] = f"sine({period + gpu / 3:.2f},{low},{high})"
        values[f"{gpu}.process"] = f"{os.getpid()},{10 << 30},sine({5 + gpu},0,100)"
    return values


class Client:
    """One panel that is open."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self._connection = connection
        self.sizes: list[int] = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while message := await self._connection.read_message():
            text = message if isinstance(message, str) else message.decode()
            if text.startswith('{"type":"sample"'):
                self.sizes.append(len(text.encode()))

    def close(self) -> None:
        self._connection.close()
        self._reader.cancel()


@asynccontextmanager
async def clients(server: Server, count: int) -> AsyncIterator[list[Client]]:
    """Let so many clients look at the GPUs; each has got samples when the block begins."""
    url = server.url.replace("http", "ws", 1) + "jupyter-dist/stream"
    async with AsyncExitStack() as stack:
        all_clients = []
        for _ in range(count):
            request = HTTPRequest(url, headers={"Authorization": f"token {server.token}"})
            connection = await websocket_connect(request)
            await connection.write_message(json.dumps({"watch": ["gpus"]}))
            all_clients.append(Client(connection))
            stack.callback(all_clients[-1].close)
        while any(len(client.sizes) < 3 for client in all_clients):
            await asyncio.sleep(0.1)
        yield all_clients


async def watch(server: Server, count: int, seconds: float) -> Watch:
    """Measure for some time while so many clients look."""
    found = Watch(count)
    async with clients(server, count) as all_clients:
        for client in all_clients:
            client.sizes.clear()
        main = psutil.Process(server.process.pid)
        sampler = _sampler(main)
        before = _cpu(main), _cpu(sampler)
        path = f"loop-delay?seconds={seconds}"
        found.delays = await asyncio.to_thread(server.api, "GET", path)
        found.server_cpu = 100 * (_cpu(main) - before[0]) / seconds
        found.sampler_cpu = 100 * (_cpu(sampler) - before[1]) / seconds
        found.sizes = [size for client in all_clients for size in client.sizes]
    while _sampler(main):
        await asyncio.sleep(0.05)
    return found


def _sampler(server: psutil.Process) -> psutil.Process | None:
    found = []
    for process in server.children():
        with suppress(psutil.NoSuchProcess):
            if "gpus.sampler.sampler_process" in " ".join(process.cmdline()):
                found.append(process)
    assert len(found) <= 1, "more than one process samples"
    return found[0] if found else None


def _cpu(process: psutil.Process | None) -> float:
    if process is None:
        return 0.0
    times = process.cpu_times()
    return float(times.user + times.system)


def measure(
    trials: int = 3, seconds: float = 20.0, crowd: int = CROWD, interval: float = 1.0
) -> list[Watch]:
    """Return what 0, 1 and a crowd of clients cost, in turn for each trial."""
    found: list[Watch] = []
    with tempfile.TemporaryDirectory(prefix="jb-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        build(folder / "nvml")
        state = State(folder / "state")
        state.write(**busy_gpus())
        config = folder / "config.py"
        config.write_text(_CONFIG.format(interval=interval))
        (folder / "root").mkdir()
        with patch.dict(os.environ, state.environment(folder / "nvml")):
            server = Server(folder / "home", folder / "root", f"--config={config}")
        try:
            for _ in range(trials):
                for count in (0, 1, crowd):
                    found.append(asyncio.run(watch(server, count, seconds)))
        finally:
            server.close()
    return found


def tables(found: list[Watch]) -> str:
    """Return what was measured, and whether it is what it must be."""
    counts = sorted({one.clients for one in found})

    def median(count: int, value: Any) -> float:
        return statistics.median(value(one) for one in found if one.clients == count)

    def sizes(count: int) -> list[int]:
        return [size for one in found if one.clients == count for size in one.sizes] or [0]

    heads = ["", *(f"{count} client{'s' * (count != 1)}" for count in counts)]
    lines = {
        "sampler, % of a core": lambda n: f"{median(n, lambda one: one.sampler_cpu):.2f}",
        "server, % of a core": lambda n: f"{median(n, lambda one: one.server_cpu):.2f}",
        "event loop delay, median, ms": lambda n: f"{median(n, lambda one: one.delay(50)):.2f}",
        "event loop delay, p99, ms": lambda n: f"{median(n, lambda one: one.delay(99)):.2f}",
        "event loop delay, longest per second, ms": lambda n: (
            f"{median(n, Watch.delay_of_a_second):.1f}"
        ),
        "event loop delay, longest, ms": lambda n: f"{median(n, lambda one: max(one.delays)):.1f}",
        "bytes of a sample, mean": lambda n: f"{statistics.mean(sizes(n)):.0f}",
        "bytes of a sample, largest": lambda n: str(max(sizes(n))),
    }
    rows = [[label, *(cell(count) for count in counts)] for label, cell in lines.items()]
    crowd = counts[-1]
    alone = median(1, lambda one: one.sampler_cpu)
    values = {
        "sampler_cpu": median(crowd, lambda one: one.sampler_cpu),
        "sampler_ratio": median(crowd, lambda one: one.sampler_cpu) / alone if alone else 1.0,
        "p99_above_idle": median(crowd, lambda one: one.delay(99))
        - median(0, lambda one: one.delay(99)),
        "bytes": max(sizes(crowd)),
    }
    columns: Columns = {}
    verdicts = [
        [row.label, f"{values[row.key]:.3g}", row.verdict(row.must, values[row.key], columns, [])]
        for row in ROWS
    ]
    return report.table(heads, rows) + "\n\n" + report.table(["", "value", "must"], verdicts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    options = parser.parse_args()
    print(f"{GPUS} simulated GPUs at 1 Hz, medians of {options.trials} trials;", end=" ")
    print(report.machine(version("torch")) + "\n")
    print(tables(measure(options.trials, options.seconds)))


if __name__ == "__main__":
    main()
