"""The newest state of the GPUs, at most some seconds old."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import psutil

from ...common.background_tasks import Tasks
from ...gpus.gpu_state import GpuState, no_answer
from ...gpus.metrics import Processes
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
        found, processes = self._telemetry.inventory, self._telemetry.processes
        is_told = found and found.gpus and {gpu.uuid for gpu in found.gpus} <= processes.keys()
        if found and is_told:
            return _without_ended(GpuState(found, processes=dict(processes)))
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
    there: Processes = {
        # Without a user, it is hidden, or its pid is of another namespace.
        uuid: [row for row in rows if row.user is None or psutil.pid_exists(row.pid)]
        for uuid, rows in state.processes.items()
    }
    return replace(state, processes=there)
