"""Sample as a server does, and wait for what comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psutil

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.gpus.telemetry import Telemetry, Update

from ..waiting import PATIENCE

LENIENT = 3.0
"""Times the usual patience: a busy machine does not make a sampler look stuck."""
STRICT = 0.2
"""For samplers that do get stuck: a silent one is given up after 2 s."""
PAUSES = 0.1, 0.5
"""Seconds until a sampler that has died is started again, at first and at most."""


def sampler(telemetry: Telemetry) -> psutil.Process:
    """Return the process that reads the GPUs."""
    assert telemetry.sampler.pid
    return psutil.Process(telemetry.sampler.pid)


def child_processes() -> list[psutil.Process]:
    """Return those of this process that ask the driver, and not the server that tests share."""
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if "jupyter_dist_server.gpus" in " ".join(child.cmdline()):
                found.append(child)
    return found


@asynccontextmanager
async def sampling(
    *what: str, factor: float = LENIENT, pauses: tuple[float, float] = PAUSES, **options: Any
) -> AsyncIterator[Telemetry]:
    """Sample four times a second while the block runs."""
    telemetry = Telemetry(**({"interval": 0.25, "host_pids": True} | options))
    telemetry.sampler.pauses = pauses
    usual, patience.factor = patience.factor, factor
    if what:
        telemetry.want(*what)
    try:
        yield telemetry
    finally:
        await telemetry.close()
        patience.factor = usual


async def until(condition: Callable[[], Any], what: str, timeout: float = PATIENCE) -> Any:
    """Return the first true value of `condition`, while the event loop goes on."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout:g} s"
        await asyncio.sleep(0.01)
    return value


class Pulse:
    """Whether the event loop goes on: it is compared with a thread, which is as slow under load."""

    STEP = 0.01

    async def __aenter__(self) -> Pulse:
        self.beats = 0
        """Of the loop."""
        self._of_thread = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat_in_thread)
        self._thread.start()
        self._task = asyncio.create_task(self._beat())
        return self

    async def _beat(self) -> None:
        while True:
            self.beats += 1
            await asyncio.sleep(self.STEP)

    def _beat_in_thread(self) -> None:
        while not self._ended.wait(self.STEP):
            self._of_thread += 1

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self._ended.set()
        self._thread.join()

    def is_steady(self) -> bool:
        """Return whether the loop has been blocked for less than half of the time."""
        return self.beats > self._of_thread / 2


class Listener:
    """Keeps all updates."""

    def __init__(self, telemetry: Telemetry) -> None:
        self.updates: list[Update] = []
        telemetry.listen(self.updates.append)

    def of(self, kind: str) -> list[Update]:
        """Return the updates of a kind."""
        return [update for update in self.updates if update.kind == kind]

    async def samples(self, count: int, name: str = "utilization") -> list[Update]:
        """Return the samples with a metric, as soon as there are so many more."""
        before = len(self._with(name))
        await until(lambda: len(self._with(name)) >= before + count, f"{count} samples")
        return self._with(name)[before:]

    def _with(self, name: str) -> list[Update]:
        return [update for update in self.of("sample") if name in update.values]
