"""The list of GPUs, as the real pynvml reads it from a library of ours."""

from __future__ import annotations

import asyncio
import ctypes
import json
import time
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.gpus.inventory import NO_GPU, Gpu, Inventory, inventory

from .conftest import LIBRARY, FakeNvml


def listed() -> Inventory:
    """Return the inventory, read in a child process as the server does."""
    return asyncio.run(inventory())


def no_gpu_because(found: Inventory, *words: str) -> None:
    """Check that there is no GPU, and that one plain sentence says why."""
    assert found.gpus == ()
    assert found.driver is None
    assert found.reason
    assert found.reason.endswith(".")
    assert not any(slip in found.reason for slip in ("\n", "Traceback", ".)", ".."))
    for word in words:
        assert word in found.reason


def test_no_library() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        found = listed()
    else:
        pytest.skip("this machine has NVIDIA's library")
    no_gpu_because(found, NO_GPU)


def test_a_driver_that_is_not_loaded(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=8, init_error=9)
    no_gpu_because(listed(), "driver is not loaded", "CPU")


def test_a_driver_of_another_version(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=8, init_error=18)
    no_gpu_because(listed(), "different versions", "restart", "CPU")


def test_an_error_that_nobody_knows(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=8, init_error=999)
    no_gpu_because(listed(), "NVML cannot be used", "CPU")


def test_a_gpu_that_is_lost_while_listing(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=8, list_error=15)
    no_gpu_because(listed(), "GPU is lost")


def test_no_gpus(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=0)
    found = listed()
    assert (found.gpus, found.reason) == ((), NO_GPU)


def test_eight_gpus_in_pci_order(fake_nvml: FakeNvml) -> None:
    name, memory = "NVIDIA H100 80GB HBM3", 80 * 2**30
    fake_nvml(gpus=8, name=name, memory=memory, uuid="GPU-abc", driver="570.86.15")
    found = listed()
    assert found.reason is None
    assert found.driver == "570.86.15"
    assert found.gpus == tuple(
        Gpu(
            index=index,
            uuid=f"GPU-abc-{index}",
            name=name,
            memory_total=memory,
            pci_bus_id=f"00000000:{index + 1:02X}:00.0",
            compute_capability="9.0",
        )
        for index in range(8)
    )
    assert Inventory.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_a_hanging_driver_blocks_nobody(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=8, hang=1)

    async def work() -> tuple[Inventory, int, list[psutil.Process]]:
        begun = time.monotonic()
        reading = asyncio.create_task(inventory(timeout=1.0))
        ticks = 0
        children: set[psutil.Process] = set()
        while not reading.done():
            ticks += 1
            children.update(psutil.Process().children())
            await asyncio.sleep(0.01)
        assert time.monotonic() - begun < 5
        assert len(children) == 1
        _, alive = await asyncio.to_thread(psutil.wait_procs, children, 5)
        return await reading, ticks, alive

    found, ticks, alive = asyncio.run(work())
    no_gpu_because(found, "did not answer within 1 s")
    assert alive == []
    assert ticks > 30, "the event loop was blocked"


def test_only_the_child_process_loads_the_library(fake_nvml: FakeNvml) -> None:
    fake_nvml(gpus=1)
    assert len(listed().gpus) == 1
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    assert LIBRARY not in maps.read_text()
