"""What is said of runs on several numbers of ranks, and of links, by their numbers alone."""

from __future__ import annotations

import pytest

from jupyter_dist_server.verdicts.slow.scaling import (
    LinkTime,
    Run,
    Scaling,
    link_rows,
    link_sentence,
    scaling_notices,
    scaling_rows,
    scaling_sentence,
)
from jupyter_dist_server.verdicts.slow.time_account import Account


def run(ranks: int, seconds: float, **parts: float) -> Run:
    known = dict.fromkeys(Account.__struct_fields__, 0.0) | {"step": 1.0} | parts
    return Run(ranks, seconds, Account(**known))


ONE = run(1, 8.0, compute=1.0)


def test_where_the_rest_went() -> None:
    slow = run(4, 4.0, compute=0.5, communication=0.4, other=0.1)
    scaling = Scaling([ONE, slow])
    assert scaling_sentence(scaling) == (
        "4 ranks are 2.0 times as fast as 1 rank: efficiency 50 %. "
        "Most of the loss is communication: 1.60 s of a run."
    )
    rows = scaling_rows(scaling)
    assert rows[1][:4] == ("1", "8.00 s", "1.00", "100 %")
    assert rows[2][:6] == ("4", "4.00 s", "2.00", "50 %", "50 %", "0 %")
    mixed = run(4, 4.0, compute=0.65, communication=0.15, waiting=0.2)
    assert scaling_sentence(Scaling([ONE, mixed])).endswith(
        "No single part explains most of the loss."
    )
    crowded = run(4, 4.0, compute=1.0)
    assert "compute, which takes longer than its share: 2.00 s" in scaling_sentence(
        Scaling([ONE, crowded])
    )


def test_a_good_result_needs_no_explanation() -> None:
    fine = run(4, 2.1, compute=1.0)
    assert scaling_sentence(Scaling([ONE, fine])) == (
        "4 ranks are 3.8 times as fast as 1 rank: efficiency 95 %."
    )


def test_where_it_went_is_not_known_without_a_profile() -> None:
    scaling = Scaling([ONE, Run(4, 4.0, None)])
    assert scaling_sentence(scaling) == (
        "4 ranks are 2.0 times as fast as 1 rank: efficiency 50 %. "
        "Where the rest went is not known, as the ranks could not be profiled."
    )
    assert scaling_rows(scaling)[2][4:] == ("-",) * 5


def test_weak_scaling_from_two_ranks() -> None:
    scaling = Scaling([run(2, 8.0, compute=1.0), run(4, 10.0, compute=0.8, waiting=0.2)], weak=True)
    assert scaling_sentence(scaling) == (
        "4 ranks do 1.6 times as much in the same time as 2 ranks: efficiency 80 %. "
        "Most of the loss is waiting for other ranks: 2.00 s of a run."
    )


def test_a_notice_says_which_pools_have_it() -> None:
    runs = [
        Run(1, 8.0, None, ("No driver.",)),
        Run(4, 4.0, None, ("No driver.", "Ranks share GPUs.")),
        Run(8, 4.0, None, ("No driver.", "Ranks share GPUs.")),
    ]
    assert scaling_notices(Scaling(runs)) == ["No driver.", "4, 8 ranks: Ranks share GPUs."]
    assert scaling_notices(Scaling([ONE, *runs[1:2]])) == [
        "4 ranks: No driver.",
        "4 ranks: Ranks share GPUs.",
    ]


@pytest.mark.parametrize(("ranks", "factor"), [(2, 1.0), (4, 1.5)])
def test_bus_bandwidth_is_that_of_nccl_tests(ranks: int, factor: float) -> None:
    times = [LinkTime(1024, 1e-4, "cpu"), LinkTime(1 << 26, 0.067108864, "cpu")]
    assert link_rows(times, ranks)[2] == ("64 MiB", "67109 µs", "1 GB/s", f"{factor:.3g} GB/s")
    assert link_sentence(times, ranks, "gloo") == (
        f"all_reduce on {ranks} ranks: up to {factor:.3g} GB/s of bus bandwidth, at 64 MiB "
        "(gloo, on the CPU)."
    )
