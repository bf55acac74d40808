"""The list of GPUs, as the real pynvml reads it from a library of ours."""

from __future__ import annotations

import asyncio
import ctypes
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.gpus.inventory import NO_GPU, Gpu, Inventory
from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state

from ..fake_nvml.build import LIBRARY, State
from ..waiting import PATIENCE
from .sampling import Pulse, child_processes


async def listed() -> Inventory:
    """Return the inventory, read in a child process as the server does."""
    return (await read_gpu_state()).inventory


def plain(sentence: str) -> None:
    """Check that this is for a person to read."""
    assert sentence.endswith(".")
    assert not any(slip in sentence for slip in ("\n", "Traceback", ".)", "..", "NVMLError"))


def no_gpu_because(found: Inventory, *words: str) -> None:
    """Check that there is no GPU, and that one plain sentence says why."""
    assert found.gpus == ()
    assert found.reason
    plain(found.reason)
    for word in words:
        assert word in found.reason


async def test_no_library() -> None:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        found = await listed()
    else:
        pytest.skip("this machine has NVIDIA's library")
    no_gpu_because(found, NO_GPU)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "driver is not loaded"),
        (18, "different versions"),
        (4, "no permission to use the NVIDIA driver"),
        (999, "NVML cannot be used (Unknown Error)"),
    ],
)
async def test_a_driver_that_cannot_be_used(fake_nvml: State, code: int, words: str) -> None:
    fake_nvml.write(gpus=8, init_error=code)
    no_gpu_because(await listed(), words, "ranks run on the CPU")


async def test_no_gpus(fake_nvml: State) -> None:
    fake_nvml.write(gpus=0)
    no_gpu_because(await listed(), "driver is loaded but has no GPU")


async def test_eight_gpus_in_pci_order(fake_nvml: State) -> None:
    name, memory = "NVIDIA H100 80GB HBM3", 80 * 2**30
    fake_nvml.write(
        gpus=8, name=name, memory=memory, uuid="GPU-abc", driver="570.86.15", cuda=12080, numa=1
    )
    found = await listed()
    assert (found.reason, found.problems) == (None, ())
    assert (found.driver, found.cuda) == ("570.86.15", "12.8")
    assert found.gpus == tuple(
        Gpu(
            index=index,
            uuid=f"GPU-abc-{index}",
            name=name,
            memory_total=memory,
            pci_bus_id=f"00000000:{index + 1:02X}:00.0",
            compute_capability="9.0",
            numa_node=1,
            sm_count=132,
            clock_max=1980,
        )
        for index in range(8)
    )
    assert [gpu.label for gpu in found.gpus] == list("01234567")
    assert len(set(found.gpus)) == 8


@pytest.mark.parametrize(("compute", "cores"), [("7.5", 64), ("8.0", 64), ("8.6", 128)])
async def test_multiprocessors_are_counted(fake_nvml: State, compute: str, cores: int) -> None:
    fake_nvml.write(gpus=1, compute=compute, sm_count=68)
    assert (await listed()).gpus[0].sm_count == 68, f"{cores} cores each"


async def test_what_an_old_or_a_small_driver_does_not_tell_is_left_out(fake_nvml: State) -> None:
    # GPUs that share the host's memory do not tell how much they have.
    keys = ("memory", "sm_count", "clock_sm_max", "numa", "topology", "nvlinks")
    fake_nvml.write(gpus=2, cuda="!missing", **dict.fromkeys(keys, "!unsupported"))
    found = await listed()
    assert (found.cuda, found.problems, len(found.gpus)) == (None, (), 2)
    for gpu in found.gpus:
        assert gpu.memory_total == 0
        assert (gpu.sm_count, gpu.clock_max, gpu.numa_node, gpu.links) == (None, None, None, {})


# What the state says of GPU 3 of eight, and the sentence that this becomes.
SICK = {
    "lost": ({"3.lost": 1}, "GPU 3 has fallen off the bus"),
    "lost while it is asked": ({"3.name": "!lost"}, "GPU 3 has fallen off the bus"),
    "no permission": ({"3.handle": "!permission"}, "You have no permission to use GPU 3."),
    "reset": ({"3.handle": "!reset"}, "GPU 3 must be reset"),
    "unknown": ({"3.memory": "!unknown"}, "GPU 3 cannot be used: Unknown Error."),
    "timeout": ({"3.handle": "!timeout"}, "GPU 3 cannot be used: Timeout."),
    "empty": ({"3.mig": ""}, "GPU 3 is in MIG mode but has no MIG instance"),
}


@pytest.mark.parametrize(("state", "words"), SICK.values(), ids=SICK)
async def test_one_sick_gpu_of_eight(fake_nvml: State, state: dict[str, Any], words: str) -> None:
    fake_nvml.write(gpus=8, **state)
    found = await listed()
    assert found.reason is None
    assert [gpu.index for gpu in found.gpus] == [0, 1, 2, 4, 5, 6, 7]
    assert len(found.problems) == 1
    assert words in found.problems[0]
    plain(found.problems[0])


async def test_gpus_outside_of_an_allocation_are_one_sentence(fake_nvml: State) -> None:
    fake_nvml.write(gpus=4, **{f"{index}.handle": "!permission" for index in (0, 2, 3)})
    found = await listed()
    assert [gpu.index for gpu in found.gpus] == [1]
    assert found.problems == ("You have no permission to use GPUs 0, 2, 3.",)


async def test_all_gpus_are_sick(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, lost=1)
    no_gpu_because(await listed(), "GPU 0 has fallen off the bus")
    fake_nvml.write(gpus=2, lost=1)
    found = await listed()
    no_gpu_because(found, "None of the 2 GPUs can be used")
    assert len(found.problems) == 2


async def test_the_driver_goes_while_gpus_are_listed(fake_nvml: State) -> None:
    fake_nvml.write(gpus=2, handle="!1")
    no_gpu_because(await listed(), "driver unloaded")


async def test_mig_instances_stand_for_their_gpu(fake_nvml: State) -> None:
    state = {"1.mig": "1g.10gb,,3g.40gb", "1.numa": 1}
    fake_nvml.write(gpus=3, name="NVIDIA H100", nvlinks=4, **state)
    found = await listed()
    assert found.problems == ()
    assert [gpu.label for gpu in found.gpus] == ["0", "1:0", "1:2", "2"]
    small, large = found.gpus[1:3]
    assert large == Gpu(
        index=1,
        uuid="MIG-fake-1-2",
        name="NVIDIA H100 MIG 3g.40gb",
        memory_total=40 * 2**30,
        pci_bus_id="00000000:02:00.0",
        compute_capability="9.0",
        mig=2,
        parent="GPU-fake-1",
        instance=(9, 0),
        numa_node=1,
        sm_count=48,
        clock_max=1980,
    )
    assert (small.memory_total, small.sm_count, small.instance) == (10 * 2**30, 16, (7, 0))
    assert small.links == large.links == {}, "a MIG instance reaches no other GPU"
    assert found.gpus[0].links == {"GPU-fake-2": "NVLink x4"}


async def test_how_gpus_are_connected(fake_nvml: State) -> None:
    """0 and 1 have two links, 1 and 2 have one and one that is down; 3 is alone."""
    state = {
        "0.nvlinks": 2,
        "0.nvlink_remote": "1,1",
        "1.nvlinks": 4,
        "1.nvlink_remote": "0,0,2,-",
        "2.nvlinks": 2,
        "2.nvlink_remote": "1,-",
        "2.numa": 1,
        "3.numa": 1,
    }
    fake_nvml.write(gpus=4, **state)
    zero, one, two, three = (gpu.links for gpu in (await listed()).gpus)
    a, b, c, d = (f"GPU-fake-{index}" for index in range(4))
    assert zero == {b: "NVLink x2", c: "SYS", d: "SYS"}
    assert one == {a: "NVLink x2", c: "NVLink x1", d: "SYS"}
    assert two == {a: "SYS", b: "NVLink x1", d: "NODE"}
    assert three == {a: "SYS", b: "SYS", c: "NODE"}


@pytest.mark.parametrize(
    ("level", "word"), [(10, "PIX"), (20, "PXB"), (30, "PHB"), (40, "NODE"), (50, "SYS")]
)
async def test_levels_as_nvidia_smi_calls_them(fake_nvml: State, level: int, word: str) -> None:
    fake_nvml.write(gpus=2, topology=level)
    assert (await listed()).gpus[0].links == {"GPU-fake-1": word}


async def test_a_switch_connects_all_with_all(fake_nvml: State) -> None:
    fake_nvml.write(gpus=8, nvlinks=18, **{"5.nvlinks": 12})
    gpus = (await listed()).gpus
    assert set(gpus[0].links.values()) == {"NVLink x18", "NVLink x12"}
    assert set(gpus[5].links.values()) == {"NVLink x12"}
    assert all(len(gpu.links) == 7 for gpu in gpus)


async def test_it_survives_json(fake_nvml: State) -> None:
    fake_nvml.write(gpus=3, nvlinks=2, **{"0.mig": "1g.10gb", "2.lost": 1})
    found = await listed()
    again = msgspec.json.decode(msgspec.json.encode(found), type=Inventory)
    assert again == found
    assert [gpu.links for gpu in again.gpus] == [gpu.links for gpu in found.gpus]


@pytest.mark.parametrize("call", ["INIT", "COUNT", "name"])
async def test_a_hanging_driver_blocks_nobody(
    fake_nvml: State, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "factor", 0.8 / 60)
    fake_nvml.write(gpus=8, hang=call)

    others = set(child_processes())
    children: set[psutil.Process] = set()
    async with Pulse() as pulse:
        reading = asyncio.create_task(read_gpu_state())
        while not reading.done():
            children |= set(await asyncio.to_thread(child_processes)) - others
            await asyncio.wait([reading], timeout=0.1)
    assert pulse.is_steady(), "the event loop was blocked"
    assert len(children) <= 1  # a slow look sees none
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, PATIENCE)
    no_gpu_because((await reading).inventory, "has not responded for 0.8 s")
    assert alive == []


async def test_nothing_is_left_of_a_listing_that_nobody_waits_for(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1, hang="INIT")

    reading = asyncio.create_task(read_gpu_state())
    while not fake_nvml.calls("nvmlInit"):
        await asyncio.sleep(0.01)
    assert not reading.done()
    children = child_processes()
    reading.cancel()
    await asyncio.wait([reading])
    _, alive = await asyncio.to_thread(psutil.wait_procs, children, PATIENCE)
    assert alive == []


async def test_only_the_child_process_loads_the_library(fake_nvml: State) -> None:
    fake_nvml.write(gpus=1)
    assert len((await listed()).gpus) == 1
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("needs /proc")
    assert LIBRARY not in maps.read_text()
