"""What is told of the ranks that are left when gloo has ended one."""

from __future__ import annotations

from jupyter_dist_server.common.protocol.ranks.evidence import Collective, Evidence, RankEvidence
from jupyter_dist_server.verdicts.match_waits import last_collectives


def begun(*numbers: int, tensor: str = "2 × float32", group: str = "0") -> RankEvidence:
    """Return what a rank tells that has begun broadcasts."""
    return RankEvidence(
        collectives=[
            Collective(group, number, "broadcast", [tensor], float(number), done=True)
            for number in numbers
        ]
    )


DEAD = RankEvidence(condition="dead", why="killed by signal 6 (SIGABRT)")


def test_those_that_are_left_differ() -> None:
    evidence: Evidence = {0: begun(1, 2, tensor="9 × float32"), 1: DEAD, 2: begun(1, 2)}
    assert last_collectives(evidence) == (
        "Rank 0 had begun broadcast (9 × float32), "
        "rank 2 had begun broadcast (2 × float32) as collective #2."
    )


def test_those_that_are_left_agree() -> None:
    evidence: Evidence = {0: begun(1, 2), 1: DEAD, 2: begun(1, 2), 3: begun(1, 2)}
    expected = "Ranks 0,2-3 had begun broadcast (2 × float32) as collective #2."
    assert last_collectives(evidence) == expected


def test_one_of_them_is_ahead() -> None:
    """The first rank of a broadcast need not wait for the others."""
    evidence: Evidence = {0: begun(1, 2, 3), 1: DEAD, 2: begun(1, 2)}
    expected = "Ranks 0,2 had begun broadcast (2 × float32) as collective #2."
    assert last_collectives(evidence) == expected


def test_one_of_them_is_behind() -> None:
    evidence: Evidence = {
        0: begun(1, 2, tensor="9 × float32"),
        1: DEAD,
        2: begun(1, 2),
        3: begun(1),
    }
    assert last_collectives(evidence) == (
        "Rank 0 had begun broadcast (9 × float32), "
        "rank 2 had begun broadcast (2 × float32) as collective #2."
    )


def test_another_group_was_used_before() -> None:
    used = begun(1, 2, 3, group="1")
    both = RankEvidence(collectives=[*used.collectives, *begun(4, tensor="5 × int64").collectives])
    evidence: Evidence = {0: both, 1: DEAD}
    assert last_collectives(evidence) == "Rank 0 had begun broadcast (5 × int64) as collective #4."


def test_nothing_is_recorded() -> None:
    assert last_collectives({0: RankEvidence(), 1: DEAD}) == ""
