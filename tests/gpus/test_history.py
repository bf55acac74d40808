"""The ring buffers."""

from __future__ import annotations

from itertools import pairwise

import pytest

from jupyter_dist_server.gpus.history import COARSER, History, HistoryRows
from jupyter_dist_server.gpus.metrics import METRICS, Value

START = 1_700_000_000.0


def filled(seconds: int, keep: float = 900.0, start: float = START) -> History:
    """Return a history of one GPU whose utilization is the number of the second, modulo 100."""
    history = History(keep)
    for second in range(seconds):
        of_gpu: dict[str, Value] = {"utilization": second % 100, "energy": second}
        history.add(start + second, {"GPU-a": of_gpu})
    return history


def test_the_newest_rows_are_kept() -> None:
    found = filled(1000).query()
    assert found.step == 1.0
    assert found.times == [START + second for second in range(100, 1000)]
    assert found.gpus["GPU-a"]["energy"] == list(range(100, 1000))
    assert found.gpus["GPU-a"]["utilization"][:2] == [0, 1]


def test_nothing_yet() -> None:
    assert History().query() == HistoryRows(1.0, [], {})
    assert History().query(since=0.0, step=10.0) == HistoryRows(10.0, [], {})


def test_a_stretch_of_time() -> None:
    found = filled(100).query(START + 10, START + 13)
    assert found.times == [START + 10, START + 11, START + 12]
    assert found.gpus["GPU-a"]["utilization"] == [10, 11, 12]
    assert filled(100).query(START + 100).times == []


def test_some_gpus_and_metrics() -> None:
    history = History()
    history.add(START, {uuid: {"power": 1.5, "fan": 30} for uuid in ("GPU-a", "GPU-b")})
    assert history.query(uuids=["GPU-b"], metrics=["fan"]).gpus == {"GPU-b": {"fan": [30]}}


def test_longer_steps_sum_up() -> None:
    found = filled(40).query(START + 20, step=10.0)
    assert found.step == 10.0
    assert found.times == [START + 20, START + 30]
    assert found.gpus["GPU-a"]["utilization"] == [
        24,
        34,
    ]  # means of 20 … 29, 30 … 39: 24.5, 34.5
    assert found.gpus["GPU-a"]["energy"] == [29, 39]  # a counter: the last


def test_what_is_older_comes_from_the_coarse_ring() -> None:
    keep = 60
    history = filled(600, keep)
    found = history.query(since=0.0)
    times = found.times
    coarse = [time for time in times if time < START + 540]
    assert len(coarse) == 23  # 540 s in rows of 24 s
    assert {b - a for a, b in pairwise(coarse)} == {float(COARSER)}
    assert times[len(coarse) :] == [START + second for second in range(540, 600)]
    assert history.begin == START
    # A row of the coarse ring is the mean of its 24 s; the first: 0 … 23.
    assert found.gpus["GPU-a"]["utilization"][0] == 12  # 11.5
    assert found.gpus["GPU-a"]["energy"][0] == 23


def test_the_coarse_ring_reaches_24_times_as_far() -> None:
    history = filled(40 * COARSER * 10, keep=10)
    assert history.end - history.begin == pytest.approx(10 * COARSER, abs=COARSER)


def test_faster_samples_are_summed_up() -> None:
    history = History()
    for quarter in range(8):
        history.add(START + quarter / 4, {"GPU-a": {"utilization": 10 * quarter}})
    found = history.query()
    assert found.times == [START, START + 1]
    assert found.gpus["GPU-a"]["utilization"] == [15, 55]


def test_slower_samples_have_no_rows_between() -> None:
    history = History()
    for time in (START, START + 60, START + 120):
        history.add(time, {"GPU-a": {"utilization": 1}})
    assert history.query().times == [START, START + 60, START + 120]


def test_a_tick_that_jitters_has_a_row_of_its_own() -> None:
    history = History()
    for time in (0.0, 1.02, 1.99, 3.04, 3.98):
        history.add(START + time, {"GPU-a": {"utilization": 1}})
    assert len(history.query().times) == 5


def test_what_cannot_be_had_is_null() -> None:
    history = History()
    history.add(START, {"GPU-a": {"power": 100.25}})
    history.add(START + 1, {"GPU-a": {"power": None}, "GPU-b": {"power": 3}})
    assert history.query().gpus == {
        "GPU-a": {"power": [100.2, None]},
        "GPU-b": {"power": [None, 3.0]},
    }
    assert history.query(step=100.0).gpus["GPU-a"]["power"] == [100.2]


def test_words_are_kept() -> None:
    history = History(keep=3)
    for second, words in enumerate(["", "power cap", "power cap", "thermal slowdown", ""]):
        history.add(START + second, {"GPU-a": {"throttle": words}})
    assert history.query().gpus["GPU-a"]["throttle"] == ["power cap", "thermal slowdown", ""]
    (last,) = history.query(START, step=1000.0).gpus["GPU-a"]["throttle"]
    assert last == ""


def test_a_clock_that_is_set_back() -> None:
    history = filled(950)  # the ring has gone round
    for second in range(890, 895):
        history.add(START + second - 0.05, {"GPU-a": {"utilization": 7}})
    found = history.query()
    assert found.times == sorted(set(found.times))
    assert found.times[-1] == START + 893.95
    assert found.gpus["GPU-a"]["utilization"][-6:] == [89, 7, 7, 7, 7, 7]
    assert found.times[0] == START + 50


def test_a_sample_that_comes_late_is_added_to_the_newest_row() -> None:
    """Nodes are sampled by themselves, and a busy server hears of it later."""
    history = History()
    history.add(START, {"GPU-a": {"utilization": 1}})
    history.add(START + 1.2, {"GPU-b": {"utilization": 2}})
    history.add(START + 1.0, {"GPU-a": {"utilization": 3}})
    assert history.query().times == [START, START + 1.2]
    assert history.query().gpus == {
        "GPU-a": {"utilization": [1, 3]},
        "GPU-b": {"utilization": [None, 2]},
    }


def test_gpus_of_which_nothing_is_kept_are_forgotten() -> None:
    history = History(keep=2)
    history.add(START, {"GPU-gone": {"utilization": 1}, "GPU-a": {"power": 1, "utilization": 1}})
    for second in range(1, 2 * COARSER):
        history.add(START + second, {"GPU-a": {"utilization": 1}})
    assert history.gpus == {"GPU-gone", "GPU-a"}, "the coarse ring has them"
    history.add(START + 2 * COARSER, {"GPU-a": {"utilization": 1}})
    assert history.gpus == {"GPU-a"}
    assert history.query(since=0.0).gpus.keys() == {"GPU-a"}
    assert history.query(since=0.0).gpus["GPU-a"].keys() == {"utilization"}


def test_memory_is_bounded() -> None:
    history = History(keep=900)
    values: dict[str, Value] = {m.name: "power cap" if m.text else 1.0 for m in METRICS}
    gpus = {f"GPU-{index}": values for index in range(8)}
    for second in range(1000):
        history.add(START + second, gpus)
    rings = (history._fine, history._coarse)
    size = sum(cells.itemsize * len(cells) for ring in rings for cells in ring.columns.values())
    assert size == 2 * 8 * 25 * 900 * 8  # 2.9 MB
