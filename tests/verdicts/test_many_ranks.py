"""What is said of 128 ranks is as short as of three."""

from __future__ import annotations

from jupyter_dist_server.common.protocol.ranks.evidence import (
    CodePlace,
    Collective,
    Evidence,
    Frame,
    Group,
    Message,
    RankEvidence,
)
from jupyter_dist_server.verdicts.explain_hang import explain_hang

SIZE = 128
PLACE = CodePlace("In[9]", 5, "loss.backward()")
WAIT = "wait in all_reduce #7 (20 × float32), begun by `loss.backward()` at In[9] line 5."


def waits(tensors: str = "20 × float32") -> RankEvidence:
    return RankEvidence(
        stack=[Frame("torch.distributed.distributed_c10d", "all_reduce", PLACE)],
        cell=9,
        groups={"0": Group(list(range(SIZE)))},
        collectives=[Collective("0", 7, "all_reduce", [tensors], 1.0, False, place=PLACE)],
    )


def sentence(evidence: Evidence) -> str:
    verdict = explain_hang(evidence)
    assert verdict
    return verdict.sentence


def test_ranks_that_are_missing_are_named_by_what_they_do() -> None:
    evidence = dict.fromkeys(range(SIZE), waits())
    sleeps = RankEvidence(
        stack=[Frame("__main__", "<module>", CodePlace("In[9]", 3), "time.sleep")]
    )
    evidence |= dict.fromkeys([5, *range(17, 20)], RankEvidence(idle=True, cell=9))
    evidence |= dict.fromkeys(range(100, 128), RankEvidence(condition="dead", why="killed"))
    evidence |= {40: sleeps, 42: sleeps}
    assert sentence(evidence) == (
        f"Ranks 0-4,6-16,20-39,41,43-99 {WAIT} "
        "Ranks 5,17-19 never began it: they have finished their cells. "
        "Ranks 100-127 never began it: they are dead (killed). "
        "Ranks 40,42 have not begun it: they are in `time.sleep`, In[9] line 3."
    )


def test_ranks_that_disagree() -> None:
    evidence = dict.fromkeys(range(SIZE), waits()) | dict.fromkeys(
        range(64, 96), waits("30 × int64")
    )
    assert sentence(evidence) == (
        "The ranks disagree on collective #7: ranks 0-63,96-127 began all_reduce (20 × float32) at "
        "In[9] line 5 and ranks 64-95 began all_reduce (30 × int64) at In[9] line 5."
    )


def test_each_rank_somewhere_else() -> None:
    """A few of them are told one by one, those first that cannot come any more."""
    evidence = dict.fromkeys(range(SIZE), waits())
    for rank in range(64):
        place = CodePlace("In[9]", 100 + rank)
        evidence[rank] = RankEvidence(stack=[Frame("__main__", "step", place, f"work_{rank}")])
    evidence[50] = RankEvidence(condition="stopped")
    assert sentence(evidence) == (
        f"Ranks 64-127 {WAIT} "
        "Rank 50 never began it: its process is stopped (SIGSTOP, a debugger). "
        "Rank 0 has not begun it: it is in `work_0`, In[9] line 100. "
        "Rank 1 has not begun it: it is in `work_1`, In[9] line 101. "
        "Rank 2 has not begun it: it is in `work_2`, In[9] line 102. "
        "Ranks 3-49,51-63 have not begun it either."
    )


def test_each_rank_begins_something_else() -> None:
    evidence = {rank: waits(f"{rank} × int64") for rank in range(SIZE)}
    assert sentence(evidence).endswith(
        "rank 3 began all_reduce (3 × int64) at In[9] line 5 and ranks 4-127 began something else."
    )


def test_a_large_circle() -> None:
    evidence = {
        rank: RankEvidence(
            stack=[Frame("torch.distributed.distributed_c10d", "recv", PLACE)],
            message=Message("recv", (rank + 1) % SIZE),
        )
        for rank in range(SIZE)
    }
    assert sentence(evidence).endswith(
        "rank 3 waits in recv from rank 4 at In[9] line 5 and ranks 4-127 wait, too."
    )
