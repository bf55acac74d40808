"""The newest state of the GPUs, at most some seconds old."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import psutil

from ...common.background_tasks import Tasks
from ...gpus.gpu_state import GpuState, no_answer
from ...gpus.readers.read_gpu_state import read_gpu_state
from ...gpus.telemetry import Telemetry


class LastState:
    """The GPUs and their processes as the sampler reports them, or as read just now."""

    def __init__(self, telemetry: Telemetry, tasks: Tasks) -> None:
        self._telemetry = telemetry
        self._tasks = tasks
        self._reading: asyncio.Task[GpuState] | None = None
        self._good_until = 0.0

    async def get(self) -> GpuState:
        """Return the state; concurrent callers share one reading."""
        told = self._telemetry.state
        gpus = told.inventory.gpus
        if gpus and {gpu.uuid for gpu in gpus} <= told.processes.keys():
            return _without_ended(told)
        if self._telemetry.trouble:  # asking the driver again would take long
            return no_answer(self._telemetry.trouble)
        is_old = self._reading and self._reading.done() and time.monotonic() > self._good_until
        if self._reading is None or is_old:
            self._reading = self._tasks.add(self._read())
        return _without_ended(await asyncio.shield(self._reading))

    async def _read(self) -> GpuState:
        state = await read_gpu_state()
        self._good_until = time.monotonic() + 3.0
        return state


def _without_ended(state: GpuState) -> GpuState:
    """Leave out processes that have ended since: those of jobs would look like strangers."""
    processes, samples = dict(state.processes), dict(state.samples)
    for uuid, rows in state.processes.items():
        # Without a user, it is hidden, or its pid is of another namespace.
        there = [row for row in rows if row.user is None or psutil.pid_exists(row.pid)]
        used = samples.get(uuid, {}).get("memory_used")
        if isinstance(used, int | float):  # what they had is not somebody else's
            left = sum(row.memory or 0 for row in rows) - sum(row.memory or 0 for row in there)
            samples[uuid] = samples[uuid] | {"memory_used": used - left}
        processes[uuid] = there
    return replace(state, processes=processes, samples=samples)
