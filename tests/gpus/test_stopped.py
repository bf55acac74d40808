"""A process that asks the driver is stopped, or cannot be ended: it is given up, and alone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.gpus.readers.gpu_reader import GpuReader, read_gpus
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state

from ..control_group import control_group
from ..fake_nvml.build import State
from .sampling import STRICT, Listener, child_processes, sampler, sampling, until


@pytest.fixture
def freezer() -> Iterator[Path]:
    """Return a control group whose processes not even SIGKILL ends while they are frozen."""
    with control_group(Path("/sys/fs/cgroup/freezer")) as group:  # of version 1
        yield group
        (group / "freezer.state").write_text("THAWED")


async def test_only_one_process_hangs_in_the_driver(
    fake_nvml: State, freezer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=1, hang="INIT")
    monkeypatch.setattr(patience, "factor", 4 / 60)
    first = asyncio.create_task(read_gpu_state())
    await asyncio.sleep(0)  # it has a limit now
    monkeypatch.setattr(patience, "factor", 20 / 60)
    others = [asyncio.create_task(read_gpu_state()) for _ in range(2)]
    await until(child_processes, "the process that asks the driver")
    (child,) = child_processes()
    (freezer / "cgroup.procs").write_text(str(child.pid))
    (freezer / "freezer.state").write_text("FROZEN")
    assert "has not responded for 4 s" in ((await first).inventory.reason or "")
    hangs = f"The NVIDIA driver hangs: process {child.pid} waits for it and cannot be killed."
    assert (await others[0]).inventory.reason == hangs
    assert (await others[1]).inventory.reason == hangs
    assert (await read_gpu_state()).inventory.reason == hangs
    async with sampling("gpus", factor=STRICT) as telemetry:
        await until(lambda: telemetry.trouble == hangs, "the sampler's trouble")
    assert child_processes() == [child]
    (freezer / "freezer.state").write_text("THAWED")
    await until(lambda: not child.is_running(), "its end")
    fake_nvml.write(gpus=1)
    assert len((await read_gpu_state()).inventory.gpus) == 1


async def test_one_process_hangs_however_many_readers_there_are(
    fake_nvml: State, freezer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=1, hang="INIT")
    monkeypatch.setattr(patience, "factor", patience.factor * 4 / patience.driver)
    reading = asyncio.create_task(asyncio.to_thread(GpuReader().read))
    await until(child_processes, "the process that asks the driver")
    (child,) = child_processes()
    (freezer / "cgroup.procs").write_text(str(child.pid))
    (freezer / "freezer.state").write_text("FROZEN")
    assert "has not responded for 4 s" in ((await reading).inventory.reason or "")
    hangs = f"The NVIDIA driver hangs: process {child.pid} waits for it and cannot be killed."
    assert read_gpus().inventory.reason == hangs
    assert child_processes() == [child]
    fake_nvml.write(gpus=1)
    (freezer / "freezer.state").write_text("THAWED")
    await until(lambda: read_gpus().inventory.gpus, "a GPU, as the process has ended")


def test_a_driver_that_takes_long_to_load_is_waited_for(
    fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=1, slow_init=2500)
    monkeypatch.setattr(patience, "factor", 0.2)
    with closing(GpuReader()) as reader:
        assert len(reader.read().inventory.gpus) == 1
        fake_nvml.update(hang="utilization")
        assert reader.read().inventory.reason == "The NVIDIA driver has not responded for 2 s."
    monkeypatch.setattr(patience, "factor", 0.02)
    with closing(GpuReader()) as reader:
        assert reader.read().inventory.reason == (
            "The NVIDIA driver has not responded for 1.2 s. Enable persistence mode (nvidia-smi "
            "-pm 1) if the driver takes long to load."
        )


async def test_a_stopped_listing_is_given_up(
    fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=1, hang="INIT")
    monkeypatch.setattr(patience, "factor", 2 / 60)
    reading = asyncio.create_task(read_gpu_state())
    await until(lambda: child_processes(), "the process")
    (child,) = child_processes()
    child.suspend()
    why = (await reading).inventory.reason or ""
    assert f"(pid {child.pid}) has not responded for 2 s: it is stopped (SIGSTOP" in why
    await until(lambda: not child.is_running(), "its end")


async def test_a_stopped_sampler_is_replaced(fake_nvml: State) -> None:
    fake_nvml.write(gpus=2)
    async with sampling("gpus", factor=STRICT) as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        process = sampler(telemetry)
        process.suspend()
        await until(lambda: telemetry.trouble, "the trouble")
        assert "it is stopped (SIGSTOP" in (telemetry.trouble or "")
        await until(lambda: not process.is_running(), "the end of the old process")
        await until(lambda: telemetry.trouble is None, "new values")
        await listener.samples(2)
