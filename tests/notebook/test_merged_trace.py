"""Traces of ranks become one: nothing of one rank is taken for another's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.verdicts.slow.merged_trace import merge


def trace(base: int, *events: dict[str, Any]) -> bytes:
    content = {"baseTimeNanoseconds": base, "traceEvents": events}
    return gzip.compress(json.dumps(content).encode())


def event(name: str, pid: int | str, begin: float, end: float, **more: Any) -> dict[str, Any]:
    about = {"ph": "X", "name": name, "cat": "cpu_op", "pid": pid, "tid": 7, "args": {}}
    return about | {"ts": begin, "dur": end - begin} | more


def test_two_ranks(tmp_path: Path) -> None:
    arrow = {"ph": "s", "name": "fwdbwd", "cat": "fwdbwd", "pid": 5000, "tid": 7, "ts": 1, "id": 3}
    own_rows = {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 9}
    kernel = event("gemm", 0, 2, 5, cat="kernel")
    named = {"ph": "M", "name": "process_name", "pid": 5000, "tid": 0, "args": {"name": "python"}}
    events = (event("mm", 5000, 1, 3), arrow, own_rows, kernel, named)
    merge({1: trace(2000, *events), 0: trace(1000, *events)}, tmp_path / "trace.json.gz")
    whole = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    found = whole["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert names == {0: "rank 0", 1: "rank 0, GPU 0", 1000: "rank 1", 1001: "rank 1, GPU 0"}
    assert {e["id"] for e in found if e["name"] == "fwdbwd"} == {3, 3 + (1 << 32)}
    assert {e["pid"]: e["ts"] for e in found if e["name"] == "mm"} == {0: 1, 1000: 2}
    assert {e["pid"] for e in found if e["name"] == "gemm"} == {1, 1001}
    assert not any(e["pid"] == "" for e in found)


def test_what_overlaps_is_beside(tmp_path: Path) -> None:
    events = [event("a", 1, 0, 4), event("b", 1, 1, 2), event("c", 1, 1.5, 3), event("d", 1, 3, 9)]
    merge({0: trace(0, *events)}, tmp_path / "trace.json.gz")
    whole = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    lanes = {e["name"]: e["tid"] for e in whole["traceEvents"] if e["ph"] == "X"}
    assert lanes["a"] == lanes["b"] == 7
    assert lanes["c"] == lanes["d"] != 7
    (beside,) = (e for e in whole["traceEvents"] if e["name"] == "thread_name")
    assert beside["tid"] == lanes["c"] and beside["args"]["name"] == "beside thread 7"


def test_no_trace(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        merge({0: gzip.compress(b"{")}, tmp_path / "trace.json.gz")
