"""What is said of profiles, by their numbers alone."""

from __future__ import annotations

import msgspec
import pytest

from jupyter_dist_server.common.protocol.ranks.profile_messages import (
    CollectiveTime,
    LanesRequest,
    RankProfile,
    Spent,
)
from jupyter_dist_server.verdicts.slow.lateness import waiting
from jupyter_dist_server.verdicts.slow.slow_sentences import remarks, rows, verdict
from jupyter_dist_server.verdicts.slow.time_account import lanes

STEP = 0.1
TRANSFER = 0.01


def profiles(
    begins: list[list[float]],
    spent: dict[int, list[Spent]] | None = None,
    starts: list[float] | None = None,
    **parts: float,
) -> dict[int, RankProfile]:
    """Return profiles of ranks that begin one collective per step, after so many seconds of it."""
    size = len(begins[0])
    starts = starts or [0.0] * size
    ends = [step * STEP + max(times) + TRANSFER for step, times in enumerate(begins)]
    made = {}
    for rank in range(size):
        times = [
            CollectiveTime(
                group="0",
                number=step,
                op="all_reduce",
                begin=step * STEP + begins[step][rank],
                end=ends[step],
                exposed=ends[step] - step * STEP - begins[step][rank],
                before=(spent or {}).get(rank, []),
            )
            for step in range(len(begins))
        ]
        alone = sum(time.exposed for time in times)
        made[rank] = RankProfile(
            status="ok",
            started=starts[rank],
            begin=starts[rank],
            end=len(begins) * STEP,
            steps=len(begins),
            collectives=times,
            **{"communication": alone, "exposed": alone, "compute": 0.04 * len(begins)} | parts,
        )
    return made


LATE = [[0.04, 0.07, 0.04]] * 3
UNKNOWN = "; no single cause explains most of it."


@pytest.mark.parametrize(
    ("spent", "because"),
    [
        ({1: [Spent("annotation", "data", 0.03)]}, " because of `data`."),
        ({1: [Spent("place", "`f`, In[4] line 7", 0.03)]}, " because of `f`, In[4] line 7."),
        ({1: [Spent("input", "DataLoader", 0.02)]}, " because of its DataLoader."),
        ({1: [Spent("gpu", "kernels", 0.02)]}, " because its GPU computes longer."),
        ({1: [Spent("place", "x", 0.014)]}, UNKNOWN),
        (
            {r: [Spent("place", "x", 0.03)] for r in range(3)},
            "; no single cause explains most of it.",
        ),
        (
            {1: [Spent("place", "In[4] line 7", 0.03), Spent("annotation", "data", 0.025)]},
            " because of `data`.",
        ),
    ],
)
def test_a_cause_is_named_if_it_explains_most(spent: dict[int, list[Spent]], because: str) -> None:
    said = verdict(profiles(LATE, spent))
    assert said == f"20 % of a step is waiting: rank 1 arrives 30 ms late at all_reduce{because}"


def test_several_late_ranks() -> None:
    said = verdict(profiles([[0.0, 0.05, 0.05, 0.0]] * 2))
    assert "ranks 1-2 arrive 50 ms late at all_reduce" in said


def test_who_is_late_changes() -> None:
    said = verdict(profiles([[0.04, 0.08], [0.08, 0.04], [0.04, 0.08], [0.08, 0.04]]))
    assert said == "20 % of a step is waiting for other ranks, but no rank is late each time."


def test_a_rank_that_began_the_cell_later_is_not_late() -> None:
    """Rank 1 began 30 ms after rank 0, did as much, and so joined 30 ms later."""
    made = profiles([[0.04, 0.07]], starts=[0.0, 0.03])
    found = waiting(made)
    assert found.seconds == {0: 0.0, 1: 0.0}
    assert found.skew[0] == pytest.approx(0.03)
    assert "waiting 0 %" in verdict(made)
    # Here it is rank 0 that would have been late.
    assert waiting(profiles([[0.05, 0.04]], starts=[0.0, 0.03])).seconds[1] == pytest.approx(0.01)


def test_what_all_ranks_lose() -> None:
    together = [[0.06, 0.06]] * 3
    assert verdict(profiles(together, input=0.12)) == (
        "Input-bound on all ranks: 40 % of a step is waiting for the DataLoader."
    )
    assert verdict(profiles(together, compute=0.25)).startswith(
        "The ranks are balanced: compute is 83 % of a step"
    )
    assert verdict(profiles(together, compute=0.01)) == (
        "The ranks are balanced: 87 % of a step is Python code between operations; "
        "no single line explains most of it."
    )
    copied = verdict(profiles(together, compute=0.01, copies=0.15))
    assert copied == (
        "The ranks are balanced: 50 % of a step is copying between the CPU and the GPU; "
        "no single line explains most of it."
    )
    made = profiles(together, communication=0.15, exposed=0.12)
    bare = {r: RankProfile(**{**_fields(p), "collectives": []}) for r, p in made.items()}
    assert verdict(bare) == (
        "The ranks are balanced: communication is 40 % of a step, 20 % of it overlapped with "
        "compute."
    )


def _fields(profile: RankProfile) -> dict[str, object]:
    return {name: getattr(profile, name) for name in profile.__struct_fields__}


def test_one_rank_has_nobody_to_wait_for() -> None:
    said = verdict(profiles([[0.06]] * 3, compute=0.25))
    assert said == "Compute is 83 % of a step."


def test_the_table() -> None:
    header, first, second, _ = rows(profiles(LATE))
    assert header[:4] == ("rank", "step", "compute", "input") and "peak memory" not in header
    assert first[0] == "0" and first[1] == "100 ms" and first[5] == "30 ms (30 %)"
    assert second[5] == "0 ms (0 %)" and second[4] == "10 ms (10 %)"
    assert remarks(profiles(LATE)) == ["Times are per step, the average of 3 optimizer steps."]
    made = profiles(LATE)
    made[0] = RankProfile(**{**_fields(made[0]), "steps": 2, "memory": 2048})
    assert remarks(made)[0].endswith("2 on rank 0, 3 on rank 1, 3 on rank 2.")
    assert rows(made)[1][-1] == "2 KiB"


def test_lanes_are_what_each_rank_did_when() -> None:
    made = {
        rank: msgspec.structs.replace(
            profile,
            computing=[(0.0, 0.03)],
            communicating=[(time.begin, time.end) for time in profile.collectives],
        )
        for rank, profile in profiles(LATE).items()
    }
    first, late, _ = lanes(made)
    assert (first.rank, first.start, first.end) == (0, 0.0, pytest.approx(3 * STEP))
    assert first.lanes.compute == [(0.0, 0.03)]
    assert first.lanes.waiting[0] == pytest.approx((0.04, 0.07))
    assert first.lanes.communication[0] == pytest.approx((0.07, 0.08))
    assert first.lanes.seconds.waiting == pytest.approx(3 * 0.03)
    assert late.lanes.waiting == [] and late.lanes.communication[0] == pytest.approx((0.07, 0.08))


def test_lanes_of_many_ranks_are_a_small_message() -> None:
    begins = [[0.04 + rank / 10_000 for rank in range(128)]] * 300
    told = LanesRequest(lanes(profiles(begins)))
    text = msgspec.json.encode(told)
    assert len(text) < 2**20, "the server takes no more"
    assert msgspec.json.decode(text, type=LanesRequest) == told
