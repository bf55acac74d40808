"""The real driver: ``pytest -m gpu``, on a machine with at least one NVIDIA GPU."""

from __future__ import annotations

import asyncio
import csv
import subprocess
from typing import Any

import psutil
import pytest

from jupyter_dist_server.gpus.inventory import Gpu
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from jupyter_dist_server.gpus.telemetry import Telemetry

from ..waiting import wait_for
from .held_memory import on_gpu

pytestmark = pytest.mark.gpu

MIB = 2**20
WORK = """
a = torch.randn(8192, 8192, device="cuda:0", dtype=torch.bfloat16)
while True:
    for _ in range(50):
        b = a @ a
    torch.cuda.synchronize()
"""


def smi(*fields: str) -> list[list[str]]:
    """Return what nvidia-smi says of each GPU."""
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]


@pytest.fixture(scope="module")
async def gpu() -> Gpu:
    """Return the first whole GPU."""
    return next(gpu for gpu in (await read_gpu_state()).inventory.gpus if gpu.mig is None)


async def test_the_inventory_is_that_of_nvidia_smi() -> None:
    found = (await read_gpu_state()).inventory
    fields = ("index", "uuid", "name", "memory.total", "pci.bus_id", "compute_cap")
    expected = {row[1]: row for row in smi(*fields)}
    whole = [gpu for gpu in found.gpus if gpu.mig is None]
    assert whole
    for one in whole:
        index, _, name, memory, bus, compute = expected[one.uuid]
        assert (one.index, one.name) == (int(index), name)
        assert abs(one.memory_total / MIB - int(memory)) <= 1
        assert one.pci_bus_id.upper() == bus.upper()
        assert one.compute_capability == compute
        assert one.sm_count is None or one.sm_count > 1
    assert found.driver == smi("driver_version")[0][0]
    assert found.cuda
    assert not found.problems


async def test_memory_is_what_cuda_says(gpu: Gpu) -> None:
    before = (await read_gpu_state()).samples[gpu.uuid]["memory_used"]
    with on_gpu(gpu, 2**31) as (child, used):
        now = await read_gpu_state()
        sample = now.samples[gpu.uuid]
        assert sample["memory_used"] - before > 2**31
        # CUDA counts what the driver keeps for itself as used, NVML apart.
        assert abs(sample["memory_used"] - used) < 1024 * MIB
        (row,) = [row for row in now.processes[gpu.uuid] if row.pid == child.pid] or [None]
        if row:  # in a container the pids are the host's
            assert row.memory > 2**31
            assert "python" in row.command


async def test_utilization_rises_under_load_and_the_sampler_costs_little(gpu: Gpu) -> None:
    telemetry = Telemetry(interval=1.0)
    seen: dict[str, float] = {}

    def note(*_: Any) -> None:
        for name, value in telemetry.latest.get(gpu.uuid, {}).items():
            if isinstance(value, float | int):
                seen[name] = max(value, seen.get(name, 0))

    telemetry.listen(note)
    release = telemetry.want("gpus", "pcie")
    try:
        with on_gpu(gpu, MIB, WORK):
            busy = lambda: seen.get("utilization", 0) > 80 and seen.get("power", 0) > 0  # noqa: E731
            await asyncio.to_thread(wait_for, busy, "a busy GPU", 60)
            assert telemetry.sampler.pid
            sampler = psutil.Process(telemetry.sampler.pid)
            times = sampler.cpu_times()
            await asyncio.sleep(10)  # measured over this time, not waited for
            spent = sampler.cpu_times()
    finally:
        release()
        await telemetry.close()
    cost = spent.user + spent.system - times.user - times.system
    print(f"\nsampler: {cost * 10:.2f} % of a core; most seen: {seen}")
    assert 0 < seen["memory_used"] <= seen["memory_total"]
    assert seen["temperature"] > 15
    assert seen["clock_sm"] > 100
    if "sm_active" in seen:  # where GPM is allowed
        assert seen["sm_active"] > 20
