"""All that NVML tells, read once, by a process that ends then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..common.protocol.sampler_messages import (
    ErrorsNews,
    InventoryNews,
    News,
    ProcessesNews,
    SampleNews,
    SamplerSettings,
)
from .inventory import Inventory
from .metrics import Errors, Processes, Samples
from .one_child import DriverHangsError, asking_driver
from .sampling import end_process, last_line, read_news, start_process


@dataclass(frozen=True)
class GpuState:
    """What NVML told at one time."""

    inventory: Inventory
    samples: Samples = field(default_factory=dict)
    processes: Processes = field(default_factory=dict)
    errors: Errors = field(default_factory=dict)


def state_of(said: Iterable[News]) -> GpuState | None:
    """Return what was said last of everything; `None` if that tells of no inventory."""
    inventory: Inventory | None = None
    samples: Samples = {}
    processes: Processes = {}
    errors: Errors = {}
    for news in said:
        if isinstance(news, InventoryNews):
            inventory = news.inventory
        elif isinstance(news, SampleNews):
            samples = {}
            for name, of_metric in news.values.items():
                for uuid, value in of_metric.items():
                    samples.setdefault(uuid, {})[name] = value
        elif isinstance(news, ProcessesNews):
            processes = news.processes
        elif isinstance(news, ErrorsNews):
            errors = news.errors
    return GpuState(inventory, samples, processes, errors) if inventory else None


async def read_gpu_state(
    timeout: float = 15.0,
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
        return GpuState(Inventory(reason=str(error)))


async def _read_once(
    timeout: float, environment: Mapping[str, str] | None, host_pids: bool | None
) -> GpuState:
    settings = SamplerSettings(host_pids=host_pids, once=True)
    process = await start_process(settings, environment)
    assert process.stdout and process.stderr
    try:
        out = await asyncio.wait_for(process.stdout.read(), timeout)
    except asyncio.TimeoutError:
        return GpuState(
            Inventory(reason=f"The NVIDIA driver did not respond within {timeout:g} s.")
        )
    finally:
        await end_process(process)
    if state := state_of(filter(None, map(read_news, out.splitlines()))):
        return state
    why = await last_line(process.stderr) or "its process wrote no output"
    return GpuState(Inventory(reason=f"Listing the GPUs failed: {why}."))
