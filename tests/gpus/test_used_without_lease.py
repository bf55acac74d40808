"""What is in use stays in use, also where that cannot be seen well."""

from __future__ import annotations

import os
from typing import Any

import psutil
import pytest

from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state
from jupyter_dist_server.gpus.used_without_lease import UNSEEN, in_use
from jupyter_dist_server.placement.allocate_gpus import Allocator
from jupyter_dist_server.placement.new_pool_record import new_record
from jupyter_dist_server.placement.ranks_to_gpus import GpusTaken
from jupyter_dist_server.placement.requests.request import PoolRequest

from ..fake_nvml.build import State

GB = 2**30
PID = os.getpid()
ME = f"{psutil.Process().name()}, pid {PID}, user {psutil.Process().username()}"
LISTED = "used by processes that the driver does not list"
CONTAINED = "used by processes that this container does not show"

SEEN: dict[str, tuple[dict[str, Any], str]] = {
    "free": ({"0.memory_used": 3 << 20}, ""),
    "a monitor": ({"0.memory_used": 30 << 20, "0.graphics": f"{PID},{30 << 20}"}, ""),
    "a process": (
        {"0.memory_used": 31 * GB, "0.process": f"{PID},{31 * GB},0"},
        f"used by {ME}, 31 GiB",
    ),
    "memory unknown": (
        {"0.memory_used": 14 * GB, "0.process": f"{PID},?,0"},
        f"used by {ME}, memory unknown",
    ),
    "memory unknown, of the GPU too": (
        {"0.memory_used": "!unsupported", "0.process": f"{PID},?,0"},
        f"used by {ME}, memory unknown",
    ),
    "unknown, but nothing is used": ({"0.memory_used": 1 << 20, "0.process": f"{PID},?,0"}, ""),
    "nobody listed": ({"0.memory_used": 40 * GB}, f"{LISTED}, 40 GiB"),
    "a part listed": (
        {"0.memory_used": 40 * GB, "0.process": f"{PID},{10 * GB},0"},
        f"used by {ME}, 10 GiB; {LISTED}, 30 GiB",
    ),
    "a driver's own memory": ({"0.memory_used": 500 << 20}, ""),
    "no memory of its own": ({"0.memory_used": "!unsupported"}, ""),
    "no list": (
        {"0.memory_used": 40 * GB, "0.process": "!permission"},
        f"{LISTED} (no permission), 40 GiB",
    ),
    "no list, but nothing is used": ({"0.process": "!permission"}, ""),
    "neither list nor memory": (
        {"0.memory_used": "!unsupported", "0.process": "!unsupported"},
        "perhaps used by others: the driver tells neither its processes nor its memory "
        "(unsupported)",
    ),
    "a client of MPS": (
        {"0.memory_used": 5 * GB, "0.mps": f"{PID},{5 * GB}", "0.process": ""},
        f"used by {ME}, 5 GiB",
    ),
    "one process at a time": (
        {"0.compute_mode": 3, "0.memory_used": 9 << 20, "0.process": f"{PID},{9 << 20},0"},
        f"used by {ME}, 9 MiB",
    ),
    "a MIG instance": (
        {"0.mig": "1g.10gb,1g.10gb", "0:1.process": f"{PID},{4 * GB},0", "0:1.memory_used": 4 * GB},
        f"used by {ME}, 4 GiB",
    ),
    "a MIG instance, nobody listed": (
        {"0.mig": "1g.10gb,1g.10gb", "0:1.memory_used": 4 * GB},
        f"{LISTED}, 4 GiB",
    ),
}


@pytest.mark.parametrize("case", SEEN)
async def test_what_is_seen_decides(fake_nvml: State, case: str) -> None:
    state, words = SEEN[case]
    fake_nvml.write(gpus=1, memory=80 * GB, **state)
    uses = in_use(await read_gpu_state(host_pids=True))
    assert ", ".join(map(str, uses.values())) == words
    assert not in_use(await read_gpu_state(host_pids=True), {*uses})  # as somebody leases it


async def test_a_container_says_that_it_does_not_show_them(
    fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "jupyter_dist_server.gpus.used_without_lease._HOST_PID_NAMESPACE", "pid:[1]"
    )
    fake_nvml.write(**{"gpus": 1, "memory": 80 * GB, "0.memory_used": 40 * GB})
    (use,) = in_use(await read_gpu_state()).values()
    assert str(use) == f"{CONTAINED}, 40 GiB"
    monkeypatch.setenv(UNSEEN, "50000")
    assert not in_use(await read_gpu_state())
    monkeypatch.setenv(UNSEEN, "much")
    with pytest.warns(UserWarning, match="'much', not a number of MiB"):
        assert in_use(await read_gpu_state())


async def test_a_gpu_that_no_program_may_use_is_left_out(fake_nvml: State) -> None:
    fake_nvml.write(**{"gpus": 2, "1.compute_mode": 2})
    found = (await read_gpu_state()).inventory
    assert [gpu.index for gpu in found.gpus] == [0]
    assert found.problems == (
        "GPU 1 cannot be used: its compute mode is Prohibited (nvidia-smi -i 1 -c Default "
        "changes it).",
    )


UNKNOWN = {"0.memory_used": 14 * GB, "0.process": f"{PID},?,0"}
HIDDEN = {"0.memory_used": 40 * GB}


@pytest.mark.parametrize("state", [UNKNOWN, HIDDEN], ids=["memory unknown", "nobody listed"])
async def test_pools_go_elsewhere_unless_forced(gpus: State, state: dict[str, Any]) -> None:
    gpus.update(**state)

    def ask(**fields: Any) -> Allocator:
        request = PoolRequest.from_json(fields)
        return Allocator(request, new_record(request))

    free = await ask(num_ranks=1).now()
    assert [gpu.index for gpu in free.placement.used] == [1]
    free.close()
    with pytest.raises(GpusTaken, match="GPU 0 is used by") as refused:
        await ask(gpu_ids=[0]).now()
    assert "--force" in refused.value.hint
    with pytest.raises(GpusTaken, match=r"Timed out after 0\.1 s waiting for GPUs\. GPU 0 is used"):
        allocator = ask(gpu_ids=[0], wait=0.1)
        with pytest.raises(GpusTaken):
            await allocator.now()
        await allocator.in_line(lambda reason, line: None)
    forced = await ask(gpu_ids=[0], force=True).now()
    assert [gpu.index for gpu in forced.placement.used] == [0]
    forced.close()
