"""What ranks tell that cannot all be true is no verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from jupyter_dist_server.common.protocol.ranks.evidence import (
    CodePlace,
    Collective,
    Evidence,
    Frame,
    Group,
    RankEvidence,
)
from jupyter_dist_server.verdicts.explain_hang import explain, explain_hang

EVERYONE = {"0": Group([0, 1, 2])}


def reduced(
    number: int,
    *,
    completed: bool = False,
    op: str = "all_reduce",
    tensor: str = "20 × float32",
    group: str = "0",
) -> Collective:
    """Return a collective that waits, or is complete."""
    return Collective(group, number, op, [tensor], 1.0, completed, completed)


def tells(*begun: Collective, groups: dict[str, Group] = EVERYONE) -> RankEvidence:
    """Return what a rank tells that has begun these."""
    return RankEvidence(idle=True, cell=9, groups=groups, collectives=list(begun))


def sentence(evidence: Evidence) -> str:
    """Return the sentence of a verdict that names the magic with the evidence."""
    verdict = explain_hang(evidence)
    assert verdict and verdict.kind == "contradiction", verdict and verdict.sentence
    assert "%dist_why --save" in verdict.hint and not verdict.stuck
    return verdict.sentence


def test_a_collective_that_ended_before_all_had_begun_it() -> None:
    waits, ended = reduced(7), reduced(7, completed=True)
    before = reduced(6, completed=True)
    assert sentence({0: tells(waits), 1: tells(ended), 2: tells(before)}) == (
        "No verdict: rank 1 says that all_reduce #7 is complete, "
        "rank 2 says that it has not begun it."
    )
    later = reduced(8, completed=True)
    assert sentence({0: tells(waits), 1: tells(later), 2: tells(reduced(7))}) == (
        "No verdict: rank 1 says that all_reduce #8 is complete, "
        "ranks 0,2 say that they have not begun it."
    )


def test_ranks_that_do_not_tell_anything() -> None:
    silent, sleeps = RankEvidence(condition="silent"), tells()
    verdict = explain_hang({0: silent, 1: sleeps, 2: silent})
    assert verdict and verdict.concerns_all and verdict.is_doubtful and not verdict.stuck
    assert verdict.sentence == "No verdict: ranks 0,2 do not respond."
    assert verdict.remedies[-1].magic == "%dist_restart --ranks 0,2"


def test_ranks_that_get_no_processor_are_slow_and_not_stuck() -> None:
    starved, idle = RankEvidence(condition="starved"), RankEvidence(idle=True)
    alone = explain_hang({0: starved, 1: idle})
    assert alone and not alone.stuck and not any(remedy.restarts for remedy in alone.remedies)
    why = "it is waiting for a processor, because the machine is overloaded."
    assert alone.sentence == f"Rank 0 does not respond: {why}"
    waiting = explain_hang({0: starved, 1: tells(reduced(7)), 2: tells(reduced(7))})
    assert waiting and not waiting.stuck and waiting.remedies == alone.remedies
    assert waiting.sentence.endswith(f"Rank 0 has not begun it: {why}")


def test_members_that_do_not_agree_on_their_group_are_a_mistake_in_the_program() -> None:
    evidence = {
        0: tells(reduced(1, group="5"), groups={"5": Group([0, 1], "dp0")}),
        1: tells(groups={"5": Group([1, 2], "dp0")}),
        2: tells(),
    }
    verdict = explain_hang(evidence)
    assert verdict and verdict.kind == "mismatch" and verdict.stuck
    assert verdict.sentence == (
        "The ranks disagree on who is in group dp0: rank 0 has made it of ranks 0-1, "
        "rank 1 of ranks 1-2."
    )
    assert verdict.hint.startswith("Call new_group with the same ranks on all ranks.")


def test_numbers_that_go_backwards() -> None:
    begun = [reduced(number, completed=True) for number in (1, 2, 3)]
    others = tells(*begun)
    assert sentence({0: tells(*begun, reduced(1)), 1: others, 2: others}) == (
        "No verdict: rank 0 began all_reduce #1 after all_reduce #3 of the same group."
    )


@pytest.mark.parametrize(
    "evidence",
    [
        pytest.param(
            {
                0: tells(reduced(7, op="broadcast")),
                1: tells(reduced(7, completed=True, op="broadcast")),
                2: tells(),
            },
            id="the source of a broadcast is done early",
        ),
        pytest.param(
            {
                0: tells(reduced(7)),
                1: tells(Collective("0", 7, "all_reduce", [], 1.0, True)),
                2: tells(),
            },
            id="on gloo, what failed counts as done",
        ),
        pytest.param(
            {
                0: tells(reduced(7)),
                1: tells(reduced(7, completed=True)),
                2: tells(*(reduced(number, completed=True, group="5") for number in range(101))),
            },
            id="a rank may have forgotten the group",
        ),
        pytest.param(
            {0: tells(reduced(7)), 1: tells(reduced(7, completed=True)), 2: tells()},
            id="the recorder of a rank cannot be read",
        ),
        pytest.param(
            {
                0: tells(reduced(7)),
                1: tells(reduced(7, completed=True, tensor="0 × float32")),
                2: tells(),
            },
            id="nothing is sent",
        ),
        pytest.param(
            {
                0: tells(reduced(7)),
                1: tells(reduced(7, completed=True)),
                2: RankEvidence(condition="dead"),
            },
            id="a rank that died has begun it before",
        ),
        pytest.param(
            {0: tells(reduced(7), reduced(6)), 1: tells(reduced(7), reduced(6)), 2: tells()},
            id="two threads swap neighbours",
        ),
        pytest.param(
            {
                0: tells(reduced(1, group="5"), groups={"5": Group([0])}),
                1: tells(groups={"5": Group([1, 2])}),
                2: tells(groups={"5": Group([1, 2])}),
            },
            id="groups of different ranks share a name",
        ),
        pytest.param(
            {
                0: tells(reduced(7)),
                1: tells(reduced(1, completed=True, group="5")),
                2: tells(),
            },
            id="nobody waits in the group",
        ),
    ],
)
def test_what_is_none(evidence: Evidence) -> None:
    verdict = explain_hang(evidence)
    assert verdict and verdict.kind != "contradiction", verdict and verdict.sentence


@dataclass
class Looks:
    """Looks at the ranks, one after the other."""

    seen: list[Evidence]
    taken: list[Evidence] = field(default_factory=list)

    async def __call__(self) -> Evidence:
        self.taken.append(self.seen[len(self.taken)])
        return self.taken[-1]


async def test_it_is_told_if_the_next_look_finds_the_same() -> None:
    """Rank 2 answered before it joined, rank 1 after all had been there."""
    before = tells(reduced(6, completed=True))
    moved = {0: tells(reduced(7)), 1: tells(reduced(7, completed=True)), 2: before}
    healthy = {rank: tells(reduced(7, completed=True)) for rank in range(3)}
    looks = Looks([moved, healthy])
    assert await explain(looks) == (None, healthy)
    again = {0: tells(reduced(8)), 1: tells(reduced(8, completed=True)), 2: before}
    assert await explain(Looks([moved, again, moved])) == (None, moved)
    verdict, evidence = await explain(Looks([moved, again, again]))
    assert verdict and "all_reduce #8 is complete" in verdict.sentence and evidence is again


async def test_a_rank_that_is_silent_is_asked_again() -> None:
    """It may only have got no processor."""

    def silent(line: int) -> Evidence:
        place = Frame("__main__", "<module>", CodePlace("In[9]", line))
        busy = RankEvidence(cell=9, groups=EVERYONE, stack=[place])
        return {0: tells(reduced(7)), 1: RankEvidence(condition="silent"), 2: busy}

    healthy = {rank: tells(reduced(7, completed=True)) for rank in range(3)}
    assert await explain(Looks([silent(1), healthy])) == (None, healthy)
    looks = Looks([silent(1), silent(2)])
    verdict, _ = await explain(looks)
    assert verdict and verdict.ranks == [1, 2] and "Rank 1 never began it" in verdict.sentence
    assert "line 2" in verdict.sentence and len(looks.taken) == 2
