"""Ranks whose machine is gone: at first they do not respond, then it is known why."""

from __future__ import annotations

from jupyter_dist_server.common.protocol.ranks.evidence import (
    CodePlace,
    Collective,
    Evidence,
    Frame,
    Group,
    RankEvidence,
)
from jupyter_dist_server.verdicts.explain_hang import explain_hang

PLACE = CodePlace("In[9]", 5, "loss.backward()")
WAITS = RankEvidence(
    stack=[Frame("torch.distributed.distributed_c10d", "all_reduce", PLACE)],
    cell=9,
    groups={"0": Group([0, 1, 2, 3])},
    collectives=[Collective("0", 7, "all_reduce", ["20 × float32"], 1.0, False, place=PLACE)],
)
WAIT = "wait in all_reduce #7 (20 × float32), begun by `loss.backward()` at In[9] line 5."
WHY = "its node n2 has been unreachable since 12:01:02"


def sentence(evidence: Evidence) -> str:
    """Return the verdict, which is that ranks must be replaced."""
    verdict = explain_hang(evidence)
    assert verdict and verdict.stuck and verdict.remedies[-1].restarts == verdict.ranks
    return verdict.sentence


def test_its_ranks_do_not_respond_before_it_is_known_why() -> None:
    silent = RankEvidence(condition="silent")
    assert sentence({0: WAITS, 1: WAITS, 2: silent, 3: silent}) == (
        f"Ranks 0-1 {WAIT} Ranks 2-3 never began it: they do not respond."
    )


def test_its_ranks_are_dead_and_the_node_is_named() -> None:
    dead = RankEvidence(condition="dead", why=WHY)
    assert sentence({0: WAITS, 1: WAITS, 2: dead, 3: dead}) == (
        f"Ranks 0-1 {WAIT} Ranks 2-3 never began it: they are dead "
        "(their node n2 has been unreachable since 12:01:02)."
    )
    assert sentence({0: WAITS, 1: WAITS, 2: WAITS, 3: dead}) == (
        f"Ranks 0-2 {WAIT} Rank 3 never began it: it is dead ({WHY})."
    )
