"""The sampler on another node than the pool's first, while a client displays its GPUs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable

import msgspec

from ...common.background_tasks import Tasks, within
from ...common.patience import patience
from ...common.processes.python_command import python_command
from ...common.protocol.agents.agent_messages import NodeGpus
from ...common.protocol.sampler_messages import (
    NO_DRIVER,
    STAYS_LOADED,
    SamplerSettings,
    decode_sampler_news,
)

_MODULE = "jupyter_dist_server.gpus.sampler.sampler_process"


class NodeSampler:
    """Runs the process that reads NVML on this node, and passes on its news."""

    def __init__(self, node: str, tell: Callable[[NodeGpus], None]) -> None:
        self._node = node
        self._tell = tell
        self._settings: SamplerSettings | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._running: asyncio.Task[None] | None = None
        self._tasks = Tasks()

    @property
    def pids(self) -> set[int]:
        """Its process, if there is one; one that has ended is reaped."""
        is_there = self._process and self._process.poll() is None
        return {self._process.pid} if self._process and is_there else set()

    def follow(self, settings: SamplerSettings | None) -> None:
        """Sample with these settings from now on; `None` ends it."""
        if settings == self._settings:
            return
        self._settings = settings
        if settings is None:
            if self._running:
                self._running.cancel()
            self._running = None
        elif self._running is None:
            self._running = self._tasks.add(self._keep_running())
        elif self._writer:
            self._writer.write(msgspec.json.encode(settings) + b"\n")

    async def close(self) -> None:
        """End the process."""
        self._settings = None
        await self._tasks.cancel()

    async def _keep_running(self) -> None:
        pause = 1.0
        while self._settings:
            await self._gone()  # of an earlier one; two never ask a driver that hangs
            try:
                why = await self._run_once(self._settings)
            except OSError as error:
                what = f"The process that reads the GPUs of node {self._node} cannot be started"
                why = f"{what}: {error.strerror}."
            if why:
                self._tell(NodeGpus(self._node, trouble=why))
            await asyncio.sleep(pause)
            pause = min(2 * pause, 60.0)

    async def _run_once(self, settings: SamplerSettings) -> str:
        """Run the process until it ends, or is silent; return what is wrong."""
        ours, theirs = socket.socketpair()
        with theirs:
            command = python_command(sys.executable, _MODULE)
            process = self._process = subprocess.Popen(
                [*command, msgspec.json.encode(settings).decode()],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                start_new_session=True,
            )
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        limit, advice = patience.driver, f" {STAYS_LOADED}"
        try:
            reader, self._writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 24)
            while line := await within(reader.readline(), limit):
                limit, advice = (self._settings or settings).interval + patience.node, ""
                with contextlib.suppress(ValueError):  # a line that a library printed
                    self._tell(NodeGpus(self._node, decode_sampler_news(line), visible))
        except asyncio.TimeoutError:
            silent = f"The NVIDIA driver of node {self._node} has not responded for {limit:g} s."
            return silent + advice
        except ConnectionError:
            pass
        finally:
            if self._writer:
                self._writer.transport.abort()
            self._writer = None
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await self._gone()
        is_told = process.returncode == NO_DRIVER
        return "" if is_told else f"The process that reads the GPUs of node {self._node} has died."

    async def _gone(self) -> None:
        while self._process and self._process.poll() is None:
            await asyncio.sleep(0.05)
        self._process = None
