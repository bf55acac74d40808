"""Everything read from NVML once, by a process that ends then, in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ...common.protocol.sampler_messages import FIRST_ANSWER, STAYS_LOADED, SamplerSettings
from ..gpu_state import GpuState, no_answer, read_news, state_of
from .one_child import DriverHangsError, asking_driver
from .supervise_sampler import end_process, last_line, start_process


async def read_gpu_state(
    timeout: float = FIRST_ANSWER,
    environment: Mapping[str, str] | None = None,
    host_pids: bool | None = None,
) -> GpuState:
    """Read everything once, in a process that ends then. Rates need two samples, and are not told.

    Parameters
    ----------
    timeout : float
        Seconds after which a hanging driver is given up on; the inventory then says so.
    environment, host_pids
        As of `Telemetry`.
    """
    try:
        async with asking_driver(timeout):
            return await _read_once(timeout, environment, host_pids)
    except DriverHangsError as error:
        return no_answer(str(error))


async def _read_once(
    timeout: float, environment: Mapping[str, str] | None, host_pids: bool | None
) -> GpuState:
    settings = SamplerSettings(host_pids=host_pids, once=True)
    try:
        process = await start_process(settings, environment)
    except OSError as error:
        return no_answer(f"The process that reads the GPUs cannot be started: {error.strerror}.")
    assert process.stdout and process.stderr
    try:
        out = await asyncio.wait_for(process.stdout.read(), timeout)
    except asyncio.TimeoutError:
        return no_answer(f"The NVIDIA driver did not respond within {timeout:g} s. {STAYS_LOADED}")
    finally:
        await end_process(process)
    if state := state_of(filter(None, map(read_news, out.splitlines()))):
        return state
    why = await last_line(process.stderr) or "its process wrote no output"
    return no_answer(f"Listing the GPUs failed: {why}.")
