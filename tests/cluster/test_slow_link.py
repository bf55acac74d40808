"""A node that each message takes 50 ms to, there and back: all goes on, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

HAS_TAP = os.access("/dev/net/tun", os.R_OK | os.W_OK)
WHY_NOT = why_not() or ("" if HAS_TAP else "needs /dev/net/tun")
pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)]

ROUND_TRIP = 0.05
SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"
LONGER = 12
"""Seconds: an agent that hears nothing for 10 s ends its ranks."""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Return a shell with two ranks on the first host, and two on the one that is far away."""
    hosts = Hosts(delays={2: ROUND_TRIP / 2})
    try:
        start_slurm(hosts)
        lab = Lab(hosts, "salloc", "--nodes=2", "--quiet")
        try:
            lab.ok("%load_ext jupyter_dist_server")
            lab.ok("%dist_init --nodes 2 -n 4")
            yield lab
        finally:
            lab.close()
    finally:
        hosts.close()


def test_cells_run(lab: Lab) -> None:
    assert "sum 4.0" in lab.ok(SUM)
    lab.ok("import time; begun = time.monotonic()")
    lab.ok("%%rank [3]\npass")
    lab.ok(f"took = time.monotonic() - begun; assert took >= {ROUND_TRIP}, took")


def test_a_node_far_away_is_not_taken_for_a_lost_one(lab: Lab) -> None:
    said = lab.ok(f"%%distributed\nimport time\ntime.sleep({LONGER})\nprint('slept')")
    assert "slept" in said and "lost" not in said and "unreachable" not in said, said
    assert "sum 4.0" in lab.ok(SUM)


def test_stop_ends_a_cell_on_both_nodes(lab: Lab) -> None:
    for rank in (0, 3):
        error = str(lab.stop_endless_cell(rank)["error"])
        assert "Interrupted: " in error and "did not stop" not in error, error
    assert "sum 4.0" in lab.ok(SUM)


def test_values_move_both_ways(lab: Lab) -> None:
    lab.ok("import numpy; big = numpy.arange(2_000_000.0)")
    lab.ok("%dist_push big")
    lab.ok("%%distributed\nhalf = big * 0.5 + rank")
    lab.ok("%dist_pull half --ranks all --as halves")
    lab.ok("assert all((halves[r] == big * 0.5 + r).all() for r in range(4)), halves")


def test_a_rank_that_dies_there_is_told_and_replaced(lab: Lab) -> None:
    answer = lab.run("%%rank [3]\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert "rank 3" in str(answer["error"]).lower(), answer
    said = lab.ok("%dist_status")
    assert said.count("dead") == 1, said
    lab.ok("%dist_restart --ranks 3")
    assert "sum 4.0" in lab.ok(SUM)
