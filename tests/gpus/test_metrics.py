"""What becomes of NVML's numbers, and the table of metrics."""

from __future__ import annotations

import pytest

from jupyter_dist_server.gpus.metrics import METRICS, Rate, rounded, throttle_words


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        (0x0, ""),
        (0x1, ""),  # idle: nobody is slowed down
        (0x4, "power cap"),
        (0x20 | 0x1, "thermal slowdown"),
        (0x8, "hardware slowdown"),
        (0x8 | 0x40, "hardware thermal slowdown"),  # which says why it is
        (0x8 | 0x80, "power brake"),
        (0x4 | 0x20, "power cap, thermal slowdown"),
        (0x4 | 0x10000, "power cap, reason 0x10000"),
    ],
)
def test_throttle_reasons_are_words(reasons: int, words: str) -> None:
    assert throttle_words(reasons) == words


def test_a_rate_is_growth_by_real_time() -> None:
    rate = Rate()
    assert rate.update(1000, now=10.0) is None
    assert rate.update(1500, now=10.5) == 1000
    assert rate.update(1500, now=11.0) == 0
    assert rate.update(5500, now=13.0) == 2000  # a tick was late


def test_a_counter_that_begins_anew_gives_no_rate() -> None:
    rate = Rate()
    rate.update(5000, now=1.0)
    assert rate.update(10, now=2.0) is None
    assert rate.update(30, now=3.0) == 20
    assert rate.update(40, now=3.0) is None  # no time has passed


def test_numbers_have_the_digits_worth_showing() -> None:
    assert rounded("power", 70.16) == 70.2
    assert repr(rounded("memory_used", 1024.0)) == "1024"
    assert rounded("throttle", "power cap") == "power cap"
    assert rounded("power", None) is None


def test_every_metric_has_one_name() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names) == 25
