"""From traces to numbers: of NCCL, for which no GPU is needed here, and of collectives at once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.protocol.ranks.profile_messages import RankProfile
from jupyter_dist_server.common.recorded_collectives import TorchEntry
from jupyter_dist_server.common.time_intervals import coarse, common, length, union, without
from jupyter_dist_server.rank.profile.read_trace import Trace, read_trace
from jupyter_dist_server.rank.profile.recording import Sample, Sampler
from jupyter_dist_server.rank.profile.reduce_trace import reduce
from jupyter_dist_server.rank.profile.step_watch import StepWatch

BASE = 1_700_000_000
NCCL_TRACE = Path(__file__).parent / "traces" / "nccl_rank_0.json.gz"


def event(name: str, cat: str, begin: float, end: float, **arguments: Any) -> dict[str, Any]:
    """Return an event; in milliseconds."""
    about = {"ph": "X", "name": name, "cat": cat, "pid": 1, "tid": 1, "args": arguments}
    return about | {"ts": begin * 1000, "dur": (end - begin) * 1000}


def allocated(total: int, device: int) -> dict[str, Any]:
    """Return what tells how much is allocated on a device, whose type torch numbers so."""
    arguments = {"Total Allocated": total, "Device Type": device}
    return {"ph": "i", "name": "[memory]", "ts": 1, "args": arguments}


def text(*events: dict[str, Any]) -> bytes:
    return json.dumps({"baseTimeNanoseconds": BASE * 10**9, "traceEvents": events}).encode()


def ms(profile: Any, *names: str) -> list[float]:
    return [round(getattr(profile, name) * 1000, 2) for name in names]


class Seen(Sampler):
    """A sampler that has seen some lines."""

    def __init__(self, samples: list[Sample]) -> None:
        super().__init__()
        self._samples = samples

    def samples(self) -> list[Sample]:
        """Return them."""
        return self._samples


def reduced(
    trace: Trace,
    samples: list[Sample],
    entries: list[TorchEntry],
    steps: list[float],
    cell: tuple[float, float],
) -> RankProfile:
    """Return the summary of a trace, whose steps nobody has watched."""
    return reduce(trace, Seen(samples), entries, steps, cell, StepWatch())


def test_sets_of_moments() -> None:
    some = union([(5, 6), (0, 1), (1, 3), (2, 2.5), (4, 4)])
    assert some == [(0, 3), (5, 6)]
    assert without(some, [(-1, 0.5), (1, 2), (5.5, 9)]) == [(0.5, 1), (2, 3), (5, 5.5)]
    assert common(some, [(2, 5.5)]) == [(2, 3), (5, 5.5)]
    assert common(some, []) == [] and length(some) == 4
    assert coarse([(0, 1), (3, 4), (5, 6), (9, 10)], 2) == [(0, 6), (9, 10)]
    assert coarse(some, 2) == some and coarse([], 1) == []


def test_kernels_of_nccl() -> None:
    group = {"Process Group Name": "7", "Collective name": "allreduce"}
    trace = text(
        event("aten::mm", "cpu_op", 0, 1),
        event("sgemm", "kernel", 10, 40),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)", "kernel", 30, 60, **group),
        event("step", "gpu_user_annotation", 10, 40),
        event("step", "user_annotation", 0, 1),
        event("ncclDevKernel_SendRecv(…)", "kernel", 70, 80),
        event("enumerate(DataLoader)#x.__next__", "user_annotation", 5, 20),
        allocated(4096, device=1),
        allocated(1 << 30, device=0),
    )
    samples = [Sample(BASE + 0.0, BASE + 0.02, "In[1] line 2")]
    profile = reduced(read_trace(trace), samples, [], [], (BASE, BASE + 0.1))
    assert profile.steps == 0 and profile.memory == 4096
    parts = ("compute", "input", "communication", "exposed")
    assert ms(profile, *parts) == [30, 5, 40, 30]
    (collective,) = profile.collectives
    assert (collective.group, collective.number, collective.op) == ("7", 1, "allreduce")
    assert ms(collective, "exposed") == [20]
    before = {spent.name: round(spent.seconds * 1000) for spent in collective.before}
    assert before == {"step": 20, "kernels": 20, "DataLoader": 5, "In[1] line 2": 10}


def test_copies_between_cpu_and_gpu_are_no_computation() -> None:
    trace = text(
        event("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 0, 20),
        event("sgemm", "kernel", 10, 30),
        event("Memcpy DtoD (Device -> Device)", "gpu_memcpy", 30, 35),
        event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(…)", "kernel", 40, 50),
        event("Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", 45, 90),
    )
    samples = [Sample(BASE, BASE + 0.1, "In[1] line 2")]
    profile = reduced(read_trace(trace), samples, [], [], (BASE, BASE + 0.1))
    parts = ("compute", "communication", "exposed", "copies")
    assert ms(profile, *parts) == [25, 10, 10, 50]
    assert [round(spent.seconds * 1000) for spent in profile.spent] == [65]


def test_a_host_that_runs_ahead_of_its_gpu() -> None:
    """A step takes as long as the GPU needs for it, and not as long as it takes to launch it."""
    launches = [
        event("cudaLaunchKernel", "cuda_runtime", 10 * i, 10 * i + 1, correlation=i + 1)
        for i in range(4)
    ]
    kernels = [
        event("sgemm", "kernel", 5 + 80 * i, 85 + 80 * i, correlation=i + 1) for i in range(4)
    ]
    steps = [BASE + 0.005 + 0.01 * i for i in range(4)]
    trace = read_trace(text(*launches, *kernels))
    profile = reduced(trace, [], [], steps, (BASE, BASE + 0.4))
    assert (profile.steps, profile.dropped) == (3, 1)
    assert ms(profile, "compute") == [240]
    assert round((profile.end - profile.begin) * 1000, 2) == 240
    # It is the host that is waited for: kernels of 1 ms.
    kernels = [
        event("sgemm", "kernel", 1 + 10 * i, 2 + 10 * i, correlation=i + 1) for i in range(4)
    ]
    profile = reduced(read_trace(text(*launches, *kernels)), [], [], steps, (BASE, BASE + 0.4))
    assert round((profile.end - profile.begin) * 1000, 2) == 30
    assert ms(profile, "compute") == [3]


def test_a_trace_that_was_recorded_with_nccl() -> None:
    """The numbers are those of Holistic Trace Analysis, see `tests/libraries/test_traces.py`."""
    trace = read_trace(gzip.decompress(NCCL_TRACE.read_bytes()))
    kernels = trace.kernels() + [(c.begin, c.end) for c in trace.communication]
    cell = (min(begin for begin, _ in kernels), max(end for _, end in kernels))
    profile = reduced(trace, [], [], [], cell)
    assert trace.on_gpu
    assert ms(profile, "compute", "communication", "exposed") == [115.66, 46.88, 39.56]
    ops = [collective.op for collective in profile.collectives]
    assert sorted(ops) == ["allreduce"] * 15 + ["broadcast"] * 6
    assert {collective.group for collective in profile.collectives} == {"0"}
    assert [collective.number for collective in profile.collectives] == list(range(1, 22))


def test_collectives_at_once_and_steps() -> None:
    """What is waited for is the first one that ends; what begins one is no computation."""
    trace = text(
        event("autograd::engine", "cpu_op", 100, 110),
        event("c10d::allreduce_", "cpu_op", 109, 110),
        event("gloo:all_reduce", "user_annotation", 110, 140),
        event("gloo:all_reduce", "user_annotation", 112, 150),
        event("aten::mm", "cpu_op", 115, 125),
        event("gloo:send", "user_annotation", 160, 165),
        event("gloo:broadcast", "user_annotation", 310, 320),
    )
    steps = [BASE + moment for moment in (0.05, 0.2, 0.3)]
    profile = reduced(read_trace(trace), [], [], steps, (BASE, BASE + 0.4))
    assert (profile.dropped, profile.steps) == (1, 2)
    assert ms(profile, "compute", "communication", "exposed") == [10, 45, 35]
    assert [round(c.exposed * 1000) for c in profile.collectives] == [20, 10]
    assert [c.number for c in profile.collectives] == [1, 2]


def test_groups_are_known_from_the_recorder() -> None:
    trace = read_trace(
        text(
            event("gloo:all_reduce", "user_annotation", 1, 2),
            event("gloo:barrier", "user_annotation", 3, 4),
        )
    )

    def entry(group: str, number: int, name: str) -> TorchEntry:
        return TorchEntry((group, ""), number, 0, name, 0, [], [])

    entries = [entry("3", 5, "gloo:all_reduce"), entry("0", 9, "gloo:barrier")]
    found = reduced(trace, [], entries, [], (BASE, BASE + 1)).collectives
    assert [(c.group, c.number) for c in found] == [("3", 5), ("0", 9)]
    found = reduced(trace, [], entries[:1], [], (BASE, BASE + 1)).collectives
    assert [(c.group, c.number) for c in found] == [("", 1), ("", 2)], "of another collective"
    profile = reduced(trace, [], entries[1:], [], (BASE, BASE + 1))
    assert [(c.group, c.number) for c in profile.collectives] == [("0", 9)], "it knows the last"
    assert profile.left_out == 1


def test_no_trace() -> None:
    with pytest.raises(ValueError):
        read_trace(b"{")
