"""What is read of GPUs, by the real process from a library that pynvml takes for NVIDIA's."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median

import psutil
import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.protocol.sampler_messages import (
    GpuProcess,
    InventoryNews,
    SampleNews,
)
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.gpus.metrics import METRICS
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from jupyter_dist_server.gpus.telemetry import Telemetry

from ..fake_nvml.build import State
from ..waiting import PATIENCE
from .sampling import Listener, sampling, until

MIB = 2**20


async def test_all_metrics_in_plain_units(fake_nvml: State) -> None:
    fake_nvml.write(
        **{
            "gpus": 2,
            "memory": 80 * 2**30,
            "memory_used": 5 * 2**30,
            "memory_reserved": 2**30,
            "utilization": 97,
            "1.utilization": 3,
            "memory_utilization": 40,
            "temperature": 61,
            "power": 312_450,
            "power_limit": 700_000,
            "clock_sm": 1755,
            "clock_memory": 2619,
            "fan": 45,
            "pstate": 2,
            "ecc_corrected": 4,
            "ecc_uncorrected": 1,
            "throttle": 0x4 | 0x20,
            "encoder": 12,
            "decoder": 7,
            "energy": 123_456_789,
            "pcie_tx": 1500,
            "pcie_rx": 2500,
            "nvlinks": 18,
            "nvlink_tx": "rate(2000)",
            "nvlink_rx": "rate(1000)",
            "gpm": 1,
            "gpm_sm": 81.26,
            "gpm_tensor": 33.3,
            "gpm_dram": 50,
        }
    )
    async with sampling("gpus", "pcie") as telemetry:
        first = telemetry.latest

        def complete() -> bool:
            return all(first.get("GPU-fake-1", {}).get(m.name) is not None for m in METRICS)

        await until(complete, "a value of each metric")
        # KiB, by the time that really passed between two readings, unless we had to wait in one.
        rates = {"nvlink_tx": 2000 * 1024, "nvlink_rx": 1000 * 1024}

        def right() -> bool:
            said = {name: first["GPU-fake-0"][name] for name in rates}
            return said == pytest.approx(rates, rel=0.03)

        await until(right, "the right rates")
        values = {n: v for n, v in first["GPU-fake-0"].items() if n not in rates}
        assert values == {
            "utilization": 97,
            "memory_utilization": 40,
            "memory_used": 5 * 2**30,
            "memory_free": 74 * 2**30,
            "memory_total": 80 * 2**30,
            "temperature": 61,
            "power": 312.4,
            "power_limit": 700.0,
            "clock_sm": 1755,
            "clock_memory": 2619,
            "fan": 45,
            "pstate": 2,
            "ecc_corrected": 4,
            "ecc_uncorrected": 1,
            "throttle": "power cap, thermal slowdown",
            "encoder": 12,
            "decoder": 7,
            "energy": 123_457,
            "pcie_tx": 1_500_000,
            "pcie_rx": 2_500_000,
            "sm_active": 81.3,
            "tensor_active": 33.3,
            "dram_active": 50.0,
        }
        assert first["GPU-fake-1"]["utilization"] == 3
        assert telemetry.errors == {"GPU-fake-0": {}, "GPU-fake-1": {}}
        assert telemetry.inventory
        assert [gpu.uuid for gpu in telemetry.inventory.gpus] == ["GPU-fake-0", "GPU-fake-1"]
        kept = telemetry.history.query().gpus["GPU-fake-0"]
        assert kept["utilization"][0] == 97
        assert kept["throttle"][0] == "power cap, thermal slowdown"


async def test_values_follow_the_gpu(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, utilization=10)
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.latest, "a sample")
        assert telemetry.latest["GPU-fake-0"]["utilization"] == 10
        fake_nvml.update(utilization=90)
        await until(lambda: telemetry.latest["GPU-fake-0"]["utilization"] == 90, "the new one")


async def test_what_changes_slowly_is_read_less_often(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(10)
        read = [set(update.values) for update in listener.of("sample")[:10]]
        assert all("memory_used" in names for names in read)
        assert [i for i, names in enumerate(read) if "power" in names] == [0, 8]  # 2 s
        assert [i for i, names in enumerate(read) if "temperature" in names] == [0]  # 5 s
    ticks, temperatures, rates = (
        len(fake_nvml.calls(f"nvmlDeviceGet{call} 0"))
        for call in ("UtilizationRates", "Temperature", "PcieThroughput")
    )
    assert ticks >= 10 and 1 <= temperatures <= 1 + ticks // 20 and rates == 0


async def test_what_is_not_supported_is_not_asked_again(fake_nvml: State) -> None:
    wrong = {"0.utilization": "!unsupported", "0.power": "!permission"}
    fake_nvml.write(**{"gpus": 2, "gpm": 0, "1.utilization": "!missing"} | wrong)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(6, "memory_used")
        errors = telemetry.errors["GPU-fake-0"]
        assert errors["utilization"] == errors["memory_utilization"] == "unsupported"
        assert errors["sm_active"] == errors["nvlink_tx"] == "unsupported"
        assert errors["power"] == "no permission"
        assert "temperature" not in errors
        assert telemetry.errors["GPU-fake-1"]["utilization"] == "unsupported"
        assert telemetry.latest["GPU-fake-0"]["utilization"] is None
        assert telemetry.latest["GPU-fake-1"]["memory_used"] == 0
        # Each error is said when it comes, and not at each tick.
        assert len(listener.of("errors")) == 1
    assert len(fake_nvml.calls("nvmlDeviceGetUtilizationRates 0")) == 1
    assert len(fake_nvml.calls("nvmlGpmQueryDeviceSupport 0")) == 1
    assert len(fake_nvml.calls("nvmlDeviceGetMemoryInfo_v2 1")) >= 6


RETRY = """
import time
from jupyter_dist_server.gpus.sampler import read_one_gpu
from jupyter_dist_server.gpus.inventory import describe
from jupyter_dist_server.gpus.nvml import devices, start
from jupyter_dist_server.gpus.sampler.metric_readings import READINGS

read_one_gpu._FIRST_PAUSE, read_one_gpu._LONGEST_PAUSE = 0.1, 0.4
assert start() is None
listed = devices()
(gpu,) = describe(*listed).gpus
one = read_one_gpu.Reader(gpu)
one.open(listed[0][0])
failed = []
while len(failed) < 6:
    values = one.read(READINGS[:1])
    if values:
        assert values == {"utilization": None, "memory_utilization": None}
        assert one.errors["utilization"].startswith("unknown"), one.errors
        failed.append(time.monotonic())
print(*(later - earlier for earlier, later in zip(failed, failed[1:])))
"""


def test_an_error_that_may_pass_is_retried_with_growing_pauses(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, utilization="!unknown")
    command = [sys.executable, "-c", RETRY]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    pauses = [float(word) for word in done.stdout.split()]
    # A busy machine makes them longer.
    assert all(a > b - 0.08 for a, b in zip(pauses, [0.1, 0.2, 0.4, 0.4, 0.4], strict=True)), pauses
    assert len(fake_nvml.calls("nvmlDeviceGetUtilizationRates 0")) == 6


async def test_pcie_is_read_only_while_wanted_and_delays_nothing(fake_nvml: State) -> None:
    # Three times as slow as real ones, so that all eight would hold up four ticks.
    fake_nvml.write(gpus=8, slow_pcie=60, pcie_tx=100)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        assert fake_nvml.calls("nvmlDeviceGetPcieThroughput") == []
        release = telemetry.want("pcie")
        rates = [f"GPU-fake-{index}" for index in range(8)]
        await until(
            lambda: all(telemetry.latest[uuid].get("pcie_tx") == 100_000 for uuid in rates),
            "the rates of all GPUs",
        )
        ticks = await listener.samples(6)
        pauses = [b.time - a.time for a, b in pairwise(ticks)]
        assert median(pauses) < 0.6  # now and then, a busy machine takes longer
        release()
        await until(
            lambda: all(telemetry.latest[uuid]["pcie_tx"] is None for uuid in rates),
            "the end of the rates",
        )
        asked = len(fake_nvml.calls("nvmlDeviceGetPcieThroughput"))
        await listener.samples(5)
        assert len(fake_nvml.calls("nvmlDeviceGetPcieThroughput")) == asked


async def test_processes_with_user_and_command(fake_nvml: State) -> None:
    me = psutil.Process()
    fake_nvml.write(
        **{
            "gpus": 2,
            # The driver's junk is about the first, which does nothing.
            "0.process": [f"4000001,{700 * MIB}", f"{me.pid},{300 * MIB},55", f"{me.ppid()},?,0"],
            "0.graphics": f"{me.pid},{100 * MIB}",
            "junk": 1,
        }
    )
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await until(lambda: telemetry.processes, "processes")
        gone, mine, parent = telemetry.processes["GPU-fake-0"]  # most memory first
        start = me.create_time()
        assert mine == GpuProcess(me.pid, me.username(), me.name(), 300 * MIB, 55, start)
        assert gone == GpuProcess(4000001, None, None, 700 * MIB, sm=0)
        assert (parent.pid, parent.memory, parent.sm) == (me.ppid(), None, 0)
        assert telemetry.processes["GPU-fake-1"] == []
        fake_nvml.update(**{"1.process": f"{me.pid},{MIB}"})
        await until(lambda: telemetry.processes["GPU-fake-1"], "a new process")
        assert len(listener.of("processes")) == 2  # only when they change


@pytest.mark.parametrize("trouble", [{"process_utilization": "!unsupported"}, {"junk": 1}])
async def test_in_a_container_pids_say_nothing(
    fake_nvml: State, trouble: dict[str, object]
) -> None:
    # Whoever is not among those that worked may be there under another pid.
    fake_nvml.write(gpus=1, process=f"{os.getpid()},{MIB},300", **trouble)
    async with sampling("gpus", host_pids=False) as telemetry:
        await until(lambda: telemetry.processes, "processes")
        (row,) = telemetry.processes["GPU-fake-0"]
        assert row == GpuProcess(os.getpid(), None, None, MIB, sm=None)


async def test_mig_instances(fake_nvml: State) -> None:
    fake_nvml.write(
        **{
            "gpus": 1,
            "mig": "1g.10gb,2g.20gb",
            "temperature": 66,
            "throttle": 0x4,
            "gpm": 1,
            "0:1.gpm_sm": 44,
            "0:1.memory_used": 3 * 2**30,
            "0:1.process": f"{os.getpid()},{MIB}",
        }
    )
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(3, "sm_active")
        assert telemetry.inventory
        small, large = (gpu.uuid for gpu in telemetry.inventory.gpus)
        values = telemetry.latest[large]
        assert values["memory_total"] == 20 * 2**30
        assert values["memory_used"] == 3 * 2**30
        assert telemetry.latest[small]["memory_used"] == 0
        # What is the whole GPU's alone is not told for each of its parts, or sums were wrong …
        assert values["utilization"] is values["power"] is values["energy"] is None
        assert telemetry.errors[large]["power"] == "unsupported"
        # … but what all parts share is.
        assert (values["temperature"], values["throttle"]) == (66, "power cap")
        assert (values["sm_active"], telemetry.latest[small]["sm_active"]) == (44.0, 0.0)
        assert [row.pid for row in telemetry.processes[large]] == [os.getpid()]
        assert telemetry.processes[small] == []


async def test_what_a_mig_instance_has_not_is_not_asked_again(fake_nvml: State) -> None:
    """Some drivers call the question of it an invalid one."""
    fake_nvml.write(**{"gpus": 2, "0.mig": "1g.10gb", "0:0.power": "!2", "1.power": "!2"})
    async with sampling("gpus") as telemetry:
        await Listener(telemetry).samples(9, "memory_used")  # and power twice
        assert telemetry.errors["MIG-fake-0-0"]["power"] == "unsupported"
        assert telemetry.errors["GPU-fake-1"]["power"] == "invalid argument"
    assert len(fake_nvml.calls("nvmlDeviceGetPowerUsage 0:0")) == 1


async def test_a_mig_instance_that_is_removed(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, mig="1g.10gb,2g.20gb")
    async with sampling("gpus") as telemetry:
        await until(lambda: len(telemetry.latest) == 2, "two instances")
        fake_nvml.write(gpus=1, mig="1g.10gb")
        await until(lambda: list(telemetry.latest) == ["MIG-fake-0-0"], "the new list")
        assert telemetry.inventory
        assert [gpu.label for gpu in telemetry.inventory.gpus] == ["0:0"]
        assert telemetry.latest["MIG-fake-0-0"]["memory_used"] == 0
        fake_nvml.update(mig=None)
        await until(lambda: list(telemetry.latest) == ["GPU-fake-0"], "the whole GPU")


async def test_a_gpu_without_memory_of_its_own(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, memory="!unsupported")
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.errors, "errors")
        values = telemetry.latest["GPU-fake-0"]
        assert values["memory_total"] is values["memory_used"] is None
        assert values["utilization"] == 0


async def test_monitoring_that_is_not_allowed(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, gpm=1, gpm_sample="!permission")
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.errors, "errors")
        assert telemetry.errors["GPU-fake-0"]["sm_active"] == "no permission"
        assert telemetry.latest["GPU-fake-0"]["sm_active"] is None


async def test_a_driver_without_newer_functions(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, throttle=0x40, utilization="!missing")
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.errors, "errors")
        assert telemetry.latest["GPU-fake-0"]["throttle"] == "hardware thermal slowdown"
        assert telemetry.errors["GPU-fake-0"]["utilization"] == "unsupported"


async def test_a_machine_without_gpus_is_no_trouble(fake_nvml: State) -> None:
    fake_nvml.write(gpus=0)
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.inventory, "the inventory")
        assert telemetry.inventory and telemetry.inventory.reason
        assert (telemetry.latest, telemetry.trouble) == ({}, None)


async def test_gpus_that_are_gone_are_forgotten_with_their_history() -> None:
    gone, stays = (Gpu(index, f"GPU-{index}", "", 0, "", "") for index in range(2))
    telemetry = Telemetry(keep=2)
    telemetry._on_news(InventoryNews(0.0, Inventory((gone, stays))))
    telemetry._on_news(SampleNews(0.0, {"power": {"GPU-0": 1, "GPU-1": 1}}))
    telemetry._on_news(InventoryNews(1.0, Inventory((stays,))))
    for second in range(1, 48):
        telemetry._on_news(SampleNews(second, {"power": {"GPU-1": 1}}))
    assert telemetry.all_gpus == {"GPU-0": gone, "GPU-1": stays}
    telemetry._on_news(SampleNews(48.0, {"power": {"GPU-1": 1}}))
    assert telemetry.all_gpus == {"GPU-1": stays}


async def test_one_reading(fake_nvml: State) -> None:
    me = os.getpid()
    fake_nvml.write(gpus=2, memory_used=MIB, process=f"{me},{MIB},7", fan="!unsupported")
    found = await read_gpu_state(host_pids=True)
    assert [gpu.uuid for gpu in found.inventory.gpus] == ["GPU-fake-0", "GPU-fake-1"]
    assert found.samples["GPU-fake-1"]["memory_used"] == MIB
    assert found.samples["GPU-fake-1"]["fan"] is None
    assert found.errors["GPU-fake-1"]["fan"] == "unsupported"
    assert [row.pid for row in found.processes["GPU-fake-0"]] == [me]


async def test_what_a_library_prints_is_no_answer(
    fake_nvml: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=1)
    (tmp_path / "sitecustomize.py").write_text("""print('Hello {}\\n{}\\n[1]\\n5')""")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    assert (await read_gpu_state()).samples.keys() == {"GPU-fake-0"}
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.latest, "a sample")


async def test_one_reading_of_a_driver_that_hangs(
    fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "factor", 1 / 60)
    fake_nvml.write(gpus=2, hang="temperature")
    found = await read_gpu_state()
    assert "The NVIDIA driver has not responded for 1 s." in (found.inventory.reason or "")
    assert found.samples == {}


async def test_one_reading_without_a_driver(fake_nvml: State) -> None:
    fake_nvml.write(gpus=2, init_error=9)
    found = await read_gpu_state()
    assert found.inventory.gpus == ()
    assert "not loaded" in (found.inventory.reason or "")
