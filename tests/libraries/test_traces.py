"""Profiles have the numbers that Holistic Trace Analysis has, where both measure.

It measures kernels on GPUs alone: of a trace of CPU ranks it has no numbers, or fails.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.rank.profile.read_trace import read_trace
from jupyter_dist_server.rank.profile.reduce_trace import reduce
from jupyter_dist_server.verdicts.slow.time_account import account

from ..rank.test_profile import NCCL_TRACE, event, text

pytestmark = pytest.mark.libraries


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
