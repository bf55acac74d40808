"""The benchmarks measure what they say, in the small."""

from __future__ import annotations

import sys

import pytest

from benchmarks import fanout, recorder, report, script_cost, why
from benchmarks.case import run_case
from benchmarks.goals import ROWS, Columns
from benchmarks.measures import Sizes, wrong_lines
from benchmarks.queue_simulation import ORDERS, jobs, simulate

SMALL = Sizes(trials=1, lines=50, growth_lines=100, cells=4, mebibytes=1, blocked=0.1)
PEERS = ["ray", "monarch", "ipyparallel", "jupyter-distributed", "nbdistributed"]


@pytest.mark.parametrize("name", ["ours", "ours, served", "N kernels"])
def test_a_system_is_measured(name: str) -> None:
    record = run_case(name, 2, sys.executable, SMALL)
    assert record["failures"] == {}
    values = record["values"]
    assert values["wrong_lines"] == 0
    assert 1 < values["wire"] < 6  # what comes late is drawn again
    expected = {row.key for row in ROWS}
    if name != "ours, served":
        expected -= {"blocked_ratio", "blocked_worst_ms"}
    if name == "N kernels":
        expected -= {"warm_s", "pull_mib_s", "push_mib_s", "death_ms", "replace_s"}
        expected -= {"stop_collective_ms", "stop_stuck_s"}
        expected -= {"why_ms", "lasting_ratio"}
    assert set(values) == expected
    may_be_zero = ("wrong_lines", "rest_mib", "cpu_ms")
    assert all(value > 0 for key, value in values.items() if key not in may_be_zero)


def test_a_system_that_does_not_start_is_reported() -> None:
    record = run_case("ray", 2, sys.executable, SMALL)  # it is not in our environment
    assert record["values"] == {}
    assert "ray" in record["failures"]["start"]
    assert "- ray, start: " in report.results([record], PEERS)


def test_fan_out_reaches_all_ranks() -> None:
    costs = fanout.measure((1, 3), cells=3)
    assert [cost.ranks for cost in costs] == [1, 3]
    assert "One more rank costs" in report.fan_out(costs)


def test_verdicts_are_timed() -> None:
    times = why.measure((2, 70), looks=1)
    assert list(times) == [2, 70] and "| 70 | " in report.why(times)


def test_the_recorder_is_measured_beside_pools_without_it() -> None:
    blocks = recorder.measure(blocks=3, calls=20)
    assert list(blocks) == list(recorder.KINDS)
    assert all(len(times) == 3 and min(times) > 0 for times in blocks.values())
    assert report.recorder(blocks).count("\n") == 4


def test_scripts_that_can_be_asked_are_measured_beside_others() -> None:
    blocks = script_cost.measure(blocks=3, calls=20)
    assert all(len(times) == 3 and min(times) > 0 for times in blocks.values())
    assert report.recorder(blocks).count("\n") == 3


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<0:0>\n<1:0>\n<0:1>\n<1:1>\n", 0),
        ("[stdout:0] <0:0>\n(Rank pid=7) <0:1>\n[1] <1:0>\n<1:1>\n", 0),
        ("<0:0>\n<0:1>\n<1:0>\n", 1),  # one is lost
        ("<0:0>\n<0:1>\n<0:1>\n<1:0>\n<1:1>\n", 1),  # one came twice
        ("<0:1>\n<0:0>\n<1:0>\n<1:1>\n", 1),  # the wrong way round
        ("<0:0><1:0>\n<0:1>\n<1:1>\n", 1),  # two on one line
    ],
)
def test_wrong_lines_are_counted(text: str, wrong: int) -> None:
    assert wrong_lines(text, 2, 2) == wrong


def test_what_is_met_is_told_from_what_is_missed() -> None:
    rows = {row.key: row for row in ROWS}
    columns: Columns = {
        "N kernels": {"pass_ms": 20.0, "lines_s": 100.0},
        "ray": {"cold_s": 8.0},
        "monarch": {"cold_s": 6.0, "pass_ms": 7.0},
    }

    def verdict(key: str, value: float) -> str:
        return rows[key].verdict(rows[key].must, value, columns, PEERS)

    assert verdict("cold_s", 3.0) == "≤ 0.5 × best peer: met"
    assert verdict("cold_s", 3.1) == "≤ 0.5 × best peer: **missed**"
    assert verdict("warm_s", 1.5) == "≤ 0.25 × best peer: met"
    assert verdict("lines_s", 101.0) == "≥ N kernels: met"
    assert verdict("lines_s", 99.0) == "≥ N kernels: **missed**"
    assert verdict("pass_ms", 9.0).startswith("≤ jupyter-distributed: not measured; ")
    assert verdict("pass_ms", 9.0).endswith("≤ 0.5 × N kernels: met")


def test_no_size_of_job_starves_in_the_simulation_of_the_queue() -> None:
    given = jobs(200, seed=1)
    found = {name: simulate(given, order) for name, order in ORDERS.items()}
    assert all(len(result.median_wait) == 3 for result in found.values())
    assert found["ours"].worst_wait[4] < found["greedy (gflow)"].worst_wait[4] / 2
