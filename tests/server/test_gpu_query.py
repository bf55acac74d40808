"""Which GPUs are meant, by index, MIG instance, UUID or the beginning of one."""

from __future__ import annotations

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.server.gpus.history_query import (
    check_order,
    read_gpus,
    read_metrics,
    read_time,
)


def gpu(index: int, uuid: str, mig: int | None = None) -> Gpu:
    """Return a GPU."""
    return Gpu(index, uuid, "GPU", 1 << 30, f"00000000:0{index}:00.0", "9.0", mig=mig)


FOUND = Inventory((gpu(0, "GPU-aa"), gpu(1, "MIG-b0", 0), gpu(1, "MIG-b1", 1), gpu(2, "GPU-ab")))


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ([], ["GPU-aa", "MIG-b0", "MIG-b1", "GPU-ab"]),
        (["0"], ["GPU-aa"]),
        (["2, 0"], ["GPU-ab", "GPU-aa"]),
        (["1:1"], ["MIG-b1"]),
        (["MIG-b0", "GPU-ab"], ["MIG-b0", "GPU-ab"]),
        (["0", "GPU-aa,0,"], ["GPU-aa"]),
    ],
)
def test_gpus_are_chosen(words: list[str], chosen: list[str]) -> None:
    assert read_gpus(words, FOUND) == chosen


@pytest.mark.parametrize("words", [["3"], ["0,4"], ["1:2"], ["-1"], ["gpu-aa"], ["aa"], ["GPU-a"]])
def test_others_are_refused_with_those_that_exist(words: list[str]) -> None:
    with pytest.raises(DistError) as refused:
        read_gpus(words, FOUND)
    assert (refused.value.code, refused.value.field) == ("unknown_gpu", "gpu")
    assert "2 (" in refused.value.hint


def test_without_gpus_the_reason_is_said() -> None:
    with pytest.raises(DistError) as refused:
        read_gpus(["0"], Inventory(reason="No NVIDIA GPU found."))
    assert refused.value.hint == "No NVIDIA GPU found."


def test_negative_times_count_from_now() -> None:
    assert read_time("since", "-60", now=1000.0) == 940.0
    assert read_time("until", "940.5", now=1000.0) == 940.5
    assert read_time("since", None, now=1000.0) is None
    for since, until in ((None, None), (5.0, None), (None, 5.0), (5.0, 5.0)):
        check_order(since, until)
    with pytest.raises(DistError, match=r"until \(4\) is before since"):
        check_order(5.0, 4.0)


def test_metrics_are_chosen_by_name() -> None:
    assert read_metrics([]) is read_metrics([""]) is None
    assert read_metrics(["power, utilization", "power"]) == ["power", "utilization"]
