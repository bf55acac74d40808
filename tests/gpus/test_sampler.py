"""The sampler's process: it may hang, die, or lose GPUs and driver; the server goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise
from statistics import median

import psutil
import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.gpus.gpu_state import read_news
from jupyter_dist_server.gpus.readers.gpu_reader import GpuReader
from jupyter_dist_server.gpus.telemetry import Update

from ..fake_nvml.build import State
from ..waiting import wait_for
from .sampling import (
    LENIENT,
    STRICT,
    Listener,
    Pulse,
    child_processes,
    sampler,
    sampling,
    until,
)


def plain(sentence: str | None) -> str:
    """Check that this is one plain sentence."""
    assert sentence
    assert sentence.endswith(".")
    assert not any(slip in sentence for slip in ("\n", "Traceback", "..", "None", "{"))
    return sentence


async def test_one_process_runs_while_somebody_is_interested(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling(linger=0.5) as telemetry:
        assert child_processes() == []
        releases = [telemetry.want("gpus") for _ in range(50)]
        await until(lambda: telemetry.latest, "a sample")
        assert child_processes() == [sampler(telemetry)]
        process = sampler(telemetry)
        for release in releases[1:]:
            release()
            release()  # a second time means nothing
        listener = Listener(telemetry)
        await listener.samples(4)
        assert process.is_running()
        releases[0]()
        again = telemetry.want("gpus")  # while it lingers
        await listener.samples(4)
        assert sampler(telemetry) == process
        begun = time.monotonic()
        again()
        await until(lambda: not process.is_running(), "the process's end")
        assert time.monotonic() - begun > 0.4
        # What was is kept, and nothing old passes for new.
        assert telemetry.history.query().times
        assert (telemetry.latest, telemetry.processes, telemetry.trouble) == ({}, {}, None)
        telemetry.want("gpus")
        await until(lambda: telemetry.latest, "a sample again")
        assert sampler(telemetry) != process


@pytest.mark.parametrize(
    "line",
    [
        b"printed by a library",
        b"[]",
        b'{"type": "weather", "time": 0}',
        b'{"type": "sample", "time": 0, "values": {"power": {"GPU-0": []}}}',
        b'{"type": "processes", "time": 0, "processes": {"GPU-0": [{"pid": "1"}]}}',
        b"[" * 5000,
    ],
)
def test_what_the_process_would_not_say_is_logged_and_dropped(
    line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    assert read_news(line) is None
    assert "The process that reads the GPUs wrote" in caplog.text


async def test_the_process_goes_on_after_what_it_does_not_understand(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(1)
        process = telemetry.sampler._process
        assert process and process.stdin
        process.stdin.write(b'junk\n{"interval": "often"}\n' + b"[" * 5000 + b"\n")
        await listener.samples(3)
        assert process.returncode is None


async def test_the_cost_does_not_grow_with_interest(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(1)
        for _ in range(50):
            telemetry.want("gpus")()
            telemetry.want("gpus")
        await listener.samples(4)
        assert child_processes() == [sampler(telemetry)]
    # Each tick reads once, and nobody's coming or going is a reason to read all again.
    ticks = len(fake_nvml.calls("nvmlDeviceGetUtilizationRates 0"))
    assert 5 <= ticks < len(listener.of("sample")) + 20  # we may not have heard of the last ones
    assert len(fake_nvml.calls("nvmlDeviceGetTemperature 0")) <= 1 + ticks // 20


async def test_a_crash_is_noticed_and_repaired(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        first = sampler(telemetry)
        first.kill()
        await until(lambda: telemetry.trouble, "the trouble")
        last = listener.of("sample")[-1]
        assert plain(telemetry.trouble) == (
            "The process that reads the GPUs has died (signal 9). It is being restarted."
        )
        assert telemetry.stale_since == last.time
        assert telemetry.latest["GPU-fake-0"]["utilization"] == 0  # the last that is known
        assert listener.updates[-1].kind == "stale"
        await until(lambda: telemetry.trouble is None, "its end")
        assert telemetry.stale_since is None
        assert [update.kind for update in listener.updates].count("stale") == 2
        await listener.samples(2)
        assert sampler(telemetry) != first


async def test_crashes_in_a_row_are_answered_ever_later(
    fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=1)
    # A library that is not there cannot even be imported.
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    pauses = 0.1, 60.0  # one that runs for longer begins anew
    async with sampling("gpus", pauses=pauses) as telemetry:
        listener = Listener(telemetry)
        await until(lambda: len(listener.of("stale")) >= 4, "four crashes")
        times = [update.time for update in listener.of("stale")[:4]]
        pauses = [b - a for a, b in pairwise(times)]
        assert all(took > pause for took, pause in zip(pauses, (0.1, 0.2, 0.4), strict=True))
        assert "has died" in plain(telemetry.trouble)


async def test_a_hang_is_noticed_and_repaired(fake_nvml: State) -> None:
    fake_nvml.write(gpus=2)
    async with sampling("gpus", factor=STRICT) as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        first = sampler(telemetry)
        async with Pulse() as pulse:
            fake_nvml.update(**{"1.hang": "utilization"})
            await until(lambda: telemetry.trouble, "the trouble")
        assert pulse.is_steady(), "the event loop was blocked"
        assert "has not responded for 2.25 s" in plain(telemetry.trouble)
        assert telemetry.stale_since == listener.of("sample")[-1].time
        await until(lambda: not first.is_running(), "the end of the old process")
        await until(lambda: len(listener.of("stale")) >= 2, "that the new one hangs too")
        patience.factor = LENIENT
        fake_nvml.update(**{"1.hang": None})
        await until(lambda: telemetry.trouble is None, "new values")
        await listener.samples(2)


async def test_a_driver_that_hangs_from_the_start(fake_nvml: State) -> None:
    fake_nvml.write(gpus=2, hang="INIT")
    # Even on a busy machine, the process asks the driver within this time.
    async with sampling("gpus", factor=0.1, pauses=(0.1, 0.2)) as telemetry:
        await until(lambda: "persistence mode" in (telemetry.trouble or ""), "the trouble")
        assert "The NVIDIA driver has not responded for 6 s" in plain(telemetry.trouble)
        assert telemetry.inventory is None
        assert telemetry.stale_since
        since = telemetry.stale_since
        await until(lambda: child_processes() == [], "the end of the process")
        await until(lambda: child_processes(), "the next one")
        assert telemetry.stale_since == since
        fake_nvml.write(gpus=0)
        patience.factor = LENIENT
        await until(lambda: telemetry.inventory, "the inventory")
        assert telemetry.trouble is None  # that there is no GPU is none


async def test_a_server_that_is_busy_takes_its_sampler_for_alive(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        first = sampler(telemetry)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            pass
        await listener.samples(10)
        assert sampler(telemetry) == first
        assert listener.of("stale") == []


async def test_one_gpu_of_eight_is_lost_and_comes_back(fake_nvml: State) -> None:
    fake_nvml.write(gpus=8, temperature=50)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        lost: list[set[object]] = []

        def note_loss(_: Update) -> None:  # the new list may come with it, if we are slow
            if telemetry.errors.get("GPU-fake-3", {}).get("utilization") == "lost":
                lost.append(set(telemetry.latest["GPU-fake-3"].values()))

        telemetry.listen(note_loss)
        fake_nvml.update(**{"3.lost": 1})
        await until(lambda: {None} in lost, "the loss")
        assert telemetry.latest["GPU-fake-4"]["temperature"] == 50
        await until(lambda: len(telemetry.inventory.gpus) == 7, "the new list")  # type: ignore[union-attr]
        assert telemetry.inventory
        (problem,) = telemetry.inventory.problems
        assert "GPU 3" in plain(problem)
        assert "GPU-fake-3" not in telemetry.latest
        assert "GPU-fake-3" in telemetry.all_gpus
        await listener.samples(2)
        assert telemetry.trouble is None  # seven are well
        fake_nvml.update(**{"3.lost": None})
        await until(lambda: "GPU-fake-3" in telemetry.latest, "its return")
        assert telemetry.inventory.problems == ()
        await until(lambda: "GPU-fake-3" in telemetry.errors, "what it does not support")
        assert telemetry.errors["GPU-fake-3"] == telemetry.errors["GPU-fake-4"]
        # The others have been sampled all the time.
        pauses = [b.time - a.time for a, b in pairwise(listener.of("sample"))]
        assert median(pauses) < 0.6  # now and then, a busy machine takes longer
    assert len(fake_nvml.calls("nvmlInitWithFlags")) <= 5  # again and again, but not at each tick
    # What had not been supported was not asked for again on a GPU that was there all the time.
    assert len(fake_nvml.calls("nvmlGpmQueryDeviceSupport 0")) == 1


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"1.broken": "!reset"}, "GPU 1 must be reset before it can be used"),
        ({"1.broken": "!unknown"}, "GPU 1 cannot be used: Unknown Error."),
        ({"1.memory_used": "!unknown"}, "GPU 1 cannot be used: Unknown Error."),
    ],
)
def test_a_gpu_that_breaks_is_not_offered_any_more(
    fake_nvml: State, state: dict[str, object], words: str
) -> None:
    fake_nvml.write(gpus=2)
    with closing(GpuReader()) as reader:
        assert len(reader.read().inventory.gpus) == 2
        fake_nvml.update(**state)
        found = reader.read().inventory
        assert [gpu.index for gpu in found.gpus] == [0]
        (problem,) = found.problems
        assert words in plain(problem)
        fake_nvml.update(**dict.fromkeys(state))
        wait_for(lambda: len(reader.read().inventory.gpus) == 2, "its return")


def test_mig_instances_that_are_created_are_noticed(fake_nvml: State) -> None:
    with closing(GpuReader()) as reader:

        def labels() -> list[str]:
            return [gpu.label for gpu in reader.read().inventory.gpus]

        fake_nvml.write(gpus=2, **{"0.mig": "1g.10gb"})
        assert labels() == ["0:0", "1"]
        fake_nvml.update(**{"0.mig": "1g.10gb,2g.20gb"})
        assert labels() == ["0:0", "0:1", "1"]
        fake_nvml.update(**{"1.mig": "1g.10gb"})  # MIG mode is switched on
        assert labels() == ["0:0", "0:1", "1:0"]
        sessions = len(fake_nvml.calls("nvmlInitWithFlags"))
        labels()
        assert len(fake_nvml.calls("nvmlInitWithFlags")) == sessions


async def test_a_driver_that_is_reloaded(fake_nvml: State) -> None:
    fake_nvml.write(**{"gpus": 2, "0.uuid": "GPU-a", "1.uuid": "GPU-b", "0.fan": 10, "1.fan": 20})
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        assert telemetry.latest["GPU-a"]["fan"] == 10
        process = sampler(telemetry)
        # The same GPUs come back in another order: what is GPU 0 now was GPU 1.
        fake_nvml.write(
            **{"gpus": 2, "0.uuid": "GPU-b", "1.uuid": "GPU-a", "0.fan": 21, "1.fan": 11},
            reload=1,
            driver="571.00",
        )
        await until(lambda: telemetry.latest["GPU-a"]["fan"] == 11, "the new values")
        assert telemetry.latest["GPU-b"]["fan"] == 21
        assert telemetry.inventory
        assert telemetry.inventory.driver == "571.00"
        assert [gpu.uuid for gpu in telemetry.inventory.gpus] == ["GPU-b", "GPU-a"]
        assert sampler(telemetry) == process


@pytest.mark.parametrize(("code", "words"), [(9, "not loaded"), (18, "different versions")])
async def test_a_driver_that_goes_and_comes_back(fake_nvml: State, code: int, words: str) -> None:
    fake_nvml.write(gpus=2)
    async with sampling("gpus") as telemetry:
        listener = Listener(telemetry)
        await listener.samples(2)
        process = sampler(telemetry)
        fake_nvml.update(reload=1, init_error=code)
        await until(lambda: telemetry.trouble, "the trouble")
        assert words in plain(telemetry.trouble)
        assert telemetry.stale_since == listener.of("sample")[-1].time
        assert telemetry.inventory
        assert len(telemetry.inventory.gpus) == 2  # nobody has taken them out
        fake_nvml.update(init_error=None)
        await until(lambda: telemetry.trouble is None, "its return")
        # Only a new process loads the library that belongs to a new driver.
        assert sampler(telemetry) != process


SERVER = """
import asyncio, sys
from jupyter_dist_server.gpus.telemetry import Telemetry

async def main():
    telemetry = Telemetry(interval=0.25)
    telemetry.want("gpus")
    while not telemetry.latest:
        await asyncio.sleep(0.01)
    print(telemetry.sampler.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("hang", [None, "temperature"])
def test_it_does_not_outlive_its_server(fake_nvml: State, hang: str | None) -> None:
    fake_nvml.write(gpus=1)
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as server:
        assert server.stdout
        process = psutil.Process(int(server.stdout.readline()))
        if hang:
            calls = len(fake_nvml.calls())
            fake_nvml.update(hang="utilization")
            wait_for(lambda: len(fake_nvml.calls()) > calls, "the call that hangs")
        assert process.is_running()
        server.send_signal(signal.SIGKILL)
    wait_for(lambda: not process.is_running(), "the end of the sampler")


async def test_ctrl_c_does_not_reach_it(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    async with sampling("gpus") as telemetry:
        await until(lambda: telemetry.latest, "a sample")
        assert os.getsid(sampler(telemetry).pid) != os.getsid(0)


async def test_a_listener_that_fails_harms_nobody(
    fake_nvml: State, caplog: pytest.LogCaptureFixture
) -> None:
    fake_nvml.write(gpus=1)

    def fail(_: object) -> None:
        raise RuntimeError("oh dear")

    async with sampling() as telemetry:
        stop = telemetry.listen(fail)
        listener = Listener(telemetry)
        telemetry.want("gpus")
        await listener.samples(2)
        stop()
    assert "oh dear" in caplog.text


def test_the_process_imports_little() -> None:
    code = "import sys, jupyter_dist_server.gpus.sampler.sampler_process; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "tornado", "jupyter_server", "psutil", "zmq"} & set(done.stdout.split())
