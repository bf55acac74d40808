"""Traces are what other programs take them for.

Holistic Trace Analysis measures kernels on GPUs alone: of a trace of CPU ranks it has no numbers,
or fails.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.rank.profile.read_trace import read_trace
from jupyter_dist_server.rank.profile.reduce_trace import reduce
from jupyter_dist_server.verdicts.slow.merged_trace import merge
from jupyter_dist_server.verdicts.slow.time_account import account

from ..notebook_driver import Notebook
from ..rank.test_profile import NCCL_TRACE, event, text
from .trace_processor import TraceProcessor, trace_processor

PLAIN_ONLY = True
pytestmark = pytest.mark.libraries

FAULTS = "select name, value from stats where value > 0 and severity != 'info'"
"""What Perfetto has dropped or not understood."""


def overlapping() -> bytes:
    """Return a trace in which compute and collectives overlap in every way."""
    kernels = [("gemm", "kernel", at, at + 3) for at in range(0, 100, 5)]
    kernels += [("relu", "kernel", at, at + 1.5) for at in range(2, 90, 9)]
    kernels += [("ncclDevKernel_AllReduce_Sum_f32()", "kernel", at, at + 6) for at in (1, 30, 93.5)]
    kernels += [("ncclDevKernel_ReduceScatter_Sum_f32()", "kernel", 33.25, 47)]
    return text(*(event(*one, stream=7 + ("nccl" in one[0])) for one in kernels))


@pytest.mark.parametrize("recorded", [True, False])
def test_compute_and_overlap(
    recorded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "1")
    trace = gzip.decompress(NCCL_TRACE.read_bytes()) if recorded else overlapping()
    theirs = analysis({0: trace}, tmp_path)
    read = read_trace(trace)
    kernels = read.kernels() + [(c.begin, c.end) for c in read.communication]
    begin, end = min(b for b, _ in kernels), max(e for _, e in kernels)
    profile = reduce(read, [], [], [], (begin, end))
    ours = account(profile, waiting=0.0, skew=0.0)
    parts = theirs.get_temporal_breakdown(visualize=False).iloc[0]
    # It has microseconds; the begin of a kernel is a large number, of which some digits are lost.
    close = 1e-4
    assert ours.step * 1e6 == pytest.approx(parts["kernel_time(us)"], rel=close)
    assert ours.compute * 1e6 == pytest.approx(parts["compute_time(us)"], rel=close)
    assert ours.communication * 1e6 == pytest.approx(parts["non_compute_time(us)"], rel=close)
    assert ours.other * 1e6 == pytest.approx(parts["idle_time(us)"], rel=close)
    overlap = theirs.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]
    assert ours.overlap * 100 == pytest.approx(overlap, abs=0.01)
    assert 1 < overlap < 99


def analysis(traces: dict[int, bytes], folder: Path) -> Any:
    from hta.trace_analysis import TraceAnalysis

    files = {}
    for rank, trace in traces.items():
        # It looks for the rank, and for a time that is not too large for its floats.
        content = json.loads(trace) | {"distributedInfo": {"rank": rank}}
        file = folder / f"rank-{rank}.json"
        file.write_text(json.dumps(content))
        files[rank] = str(file)
    return TraceAnalysis(trace_files=files, trace_dir="")


def processes(perfetto: TraceProcessor) -> dict[str, int]:
    """Return how many slices each process has."""
    sql = (
        "select process.name as name, count(*) as n from slice join thread_track on "
        "slice.track_id = thread_track.id join thread using (utid) join process using (upid) "
        "group by 1"
    )
    return dict(perfetto.query(sql))


@pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not installed")
def test_perfetto(two: Notebook, tmp_path: Path) -> None:
    """It reads all there is in traces of cells and of GPUs, and drops what `merge` moves away."""
    result = two.ok(
        "%%distributed --profile --memory\nmodel = torch.nn.Linear(9, 9)\n"
        "for _ in range(3):\n    model(torch.ones(4, 9)).sum().backward()\n"
        "    dist.all_reduce(model.weight.grad)\n"
        "if rank:\n    dist.send(torch.ones(3), 0)\nelse:\n    dist.recv(torch.ones(3), 1)"
    )
    named = re.search(r"Trace of all ranks: (\S+)", result.shown)
    assert named
    trace = bytes.fromhex(two.ok(f"print(open({named[1]!r}, 'rb').read().hex())").text.strip())
    shown = [e for e in json.loads(gzip.decompress(trace))["traceEvents"] if e["ph"] in "Xi"]
    with trace_processor(trace) as perfetto:
        assert perfetto.query(FAULTS) == []
        slices = processes(perfetto)
        assert slices.keys() == {"rank 0", "rank 1"} and sum(slices.values()) == len(shown)
        reduced = "select count(*) as n from slice where name = 'gloo:all_reduce'"
        assert perfetto.query(reduced) == [(6,)]
        assert perfetto.query("select count(*) as n from flow")[0][0] > 0

    recorded = NCCL_TRACE.read_bytes()
    merge({0: recorded, 1: recorded}, tmp_path / "trace.json.gz")
    with trace_processor((tmp_path / "trace.json.gz").read_bytes()) as perfetto:
        assert perfetto.query(FAULTS) == []
        assert processes(perfetto).keys() == {"rank 0, GPU 0", "rank 1, GPU 0"}

    overlapping = [event("a", "cpu_op", 0, 4), event("b", "cpu_op", 2, 6)]
    with trace_processor(json.dumps({"traceEvents": overlapping}).encode()) as perfetto:
        assert perfetto.query(FAULTS) == [("slice_drop_overlapping_complete_event", 1)]
