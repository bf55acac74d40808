"""What a client is told of samples depends on what it has seen, and is encoded once."""

from __future__ import annotations

import json
from typing import Any

from jupyter_dist_server.server.gpus.sample_frames import SampleFrames, encode


def told(samples: SampleFrames, tick: int, links: bool = False) -> dict[str, Any]:
    """Return the values in a frame."""
    values: dict[str, Any] = json.loads(samples.since(tick, links))["values"]
    return values


def test_only_what_has_changed_is_told() -> None:
    samples = SampleFrames()
    samples.take(1.0, {"utilization": [1, 2], "power": [10, 11]})
    assert told(samples, 0) == {"utilization": [1, 2], "power": [10, 11]}
    samples.take(2.0, {"utilization": [1, 3], "power": [10.2, 11]})
    assert told(samples, 1) == {"utilization": [1, 3]}
    samples.take(3.0, {"power": [10, None]})
    assert told(samples, 2) == {"power": [10, None]}
    assert json.loads(samples.since(2, False))["time"] == 3.0


def test_whoever_missed_samples_is_told_the_newest_values_of_all_that_changed() -> None:
    samples = SampleFrames()
    samples.take(0.0, {"utilization": [0], "temperature": [40], "fan": [30]})
    for tick in range(1, 100):
        samples.take(tick, {"utilization": [tick]} | ({"temperature": [41]} if tick == 5 else {}))
    assert told(samples, 99) == {"utilization": [99]}
    assert told(samples, 1) == {"utilization": [99], "temperature": [41]}
    assert told(samples, 0) == {"utilization": [99], "temperature": [41], "fan": [30]}


def test_a_frame_is_encoded_once_for_all() -> None:
    samples = SampleFrames()
    for tick in range(3):
        samples.take(tick, {"utilization": [tick] * 8})
    frame = samples.since(2, False)
    assert all(samples.since(2, False) is frame for _ in range(50))
    samples.take(3, {"utilization": [3] * 8})
    assert samples.since(3, False) is not frame


def test_after_other_gpus_came_everything_is_told_again() -> None:
    samples = SampleFrames()
    samples.take(1.0, {"utilization": [1, 2], "power": [1, 2]})
    samples.forget()
    samples.take(2.0, {"utilization": [1]})
    assert told(samples, 1) == {"utilization": [1]}


def test_numbers_are_as_exact_as_a_chart_can_show() -> None:
    assert encode("memory_used", [85899345920, 0, 1023]) == "[8.59e10,0,1023]"
    assert encode("pcie_tx", [1234567890.0, None]) == "[1.2e9,null]"
    assert encode("sm_active", [99.96, 0.4]) == "[100,0]"
    assert encode("power", [312.6, 700]) == "[313,700]"
    assert encode("throttle", ["power cap", "", None]) == '["power cap","",null]'
    assert json.loads(encode("memory_used", [85899345920])) == [85900000000]


def test_rates_of_links_are_for_those_who_look_at_them() -> None:
    samples = SampleFrames()
    samples.take(1.0, {"utilization": [1], "pcie_tx": [5], "energy": [7], "memory_free": [9]})
    assert told(samples, 0) == {"utilization": [1]}
    assert told(samples, 0, links=True) == {"utilization": [1], "pcie_tx": [5]}
