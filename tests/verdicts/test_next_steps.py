"""What profiles say is to be done next, by their numbers alone."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_dist_server.common.protocol.ranks.profile_messages import (
    CollectiveTime,
    RankProfile,
    Spent,
    StepFacts,
)
from jupyter_dist_server.verdicts.slow.next_steps import next_steps

STEPS = 10


def profile(facts: StepFacts | None = None, **parts: Any) -> RankProfile:
    """Return a rank's profile of ten steps of 100 ms; parts in seconds of all of them."""
    made = {"status": "ok", "begin": 0.0, "end": STEPS * 0.1, "steps": STEPS, "compute": 0.9}
    return RankProfile(**made | {"facts": facts or StepFacts()} | parts)


def both(facts: StepFacts, **parts: Any) -> list[str]:
    return next_steps({0: profile(facts, **parts), 1: profile(facts, **parts)})


def test_a_healthy_program_is_told_nothing() -> None:
    busy = StepFacts(operations=STEPS * 500, collectives=STEPS, bytes=1e6, workers=2, cores=8)
    assert both(busy, communication=0.05, exposed=0.05) == []


@pytest.mark.parametrize(
    "workers, cores, told",
    [
        (0, 8, "num_workers is 0, and rank 0 waits 61 % of a step for data: use num_workers=4."),
        (0, 2, "num_workers is 0, and rank 0 waits 61 % of a step for data: use num_workers=2."),
        (
            4,
            8,
            "rank 0 waits 61 % of a step for data with num_workers=4: store data that is prepared "
            "already.",
        ),
    ],
)
def test_input(workers: int, cores: int, told: str) -> None:
    facts = StepFacts(workers=workers, cores=cores)
    assert both(facts, input=0.61, compute=0.39) == [f"Next: {told}"]


def test_a_slow_rank() -> None:
    def rank(begin: float, before: list[Spent]) -> RankProfile:
        times = [
            CollectiveTime(
                group="0",
                number=step,
                op="all_reduce",
                begin=step * 0.1 + begin,
                end=step * 0.1 + 0.08,
                exposed=0.08 - begin,
                before=before,
            )
            for step in range(STEPS)
        ]
        waits = STEPS * (0.08 - begin)
        return profile(compute=0.3, communication=waits, exposed=waits, collectives=times)

    late = [Spent("annotation", "data", 0.04)]
    (told,) = next_steps({0: rank(0.03, []), 1: rank(0.07, late)})
    assert told == "Next: `data` takes 40 ms longer on rank 1: give all ranks the same work there."
    (told,) = next_steps({0: rank(0.03, []), 1: rank(0.07, [Spent("gpu", "kernels", 0.04)])})
    assert told.startswith("Next: kernels take 40 ms longer on rank 1: look at its GPU's clocks")


@pytest.mark.parametrize(
    "facts, parts, told",
    [
        (
            StepFacts(operations=STEPS * 1000),
            {"compute": 0.1},
            "a step runs 1,000 operations of 0.01 ms, and starting them takes longer: use larger "
            "batches, or torch.compile.",
        ),
        (
            StepFacts(operations=STEPS * 1000, on_gpu=True),
            {"compute": 0.1},
            "a step runs 1,000 kernels of 0.01 ms, and starting them takes longer: use larger "
            'batches, or torch.compile(mode="reduce-overhead").',
        ),
        (
            StepFacts(collectives=STEPS, bytes=1e8, has_ddp=True),
            {"compute": 0.5, "communication": 0.5, "exposed": 0.4},
            "40 % of a step is communication during which nothing is computed: accumulate "
            "gradients over several batches (`no_sync`), or use larger batches.",
        ),
        (
            StepFacts(collectives=STEPS, bytes=1e8),
            {"compute": 0.5, "communication": 0.4, "exposed": 0.4},
            "40 % of a step is communication during which nothing is computed: wrap the model in "
            "DistributedDataParallel, or begin with async_op=True and wait later.",
        ),
        (
            StepFacts(collectives=STEPS * 120, bytes=4096),
            {"compute": 0.5, "communication": 0.4, "exposed": 0.4},
            "a step runs 120 collectives of 4 KiB: join them, such as by torch.cat and one "
            "all_reduce.",
        ),
        (
            StepFacts(on_gpu=True),
            {"compute": 0.6, "copies": 0.3},
            "30 % of a step is copying between the CPU and the GPU: use pin_memory=True and "
            "non_blocking=True, and read values (`.item()`) only now and then.",
        ),
        (
            StepFacts(pauses=0.08),
            {},
            "Python collects garbage for 8 % of a step: call gc.freeze() before the loop, or "
            "gc.disable(), and gc.collect() now and then.",
        ),
        (
            StepFacts(growth=12 * 2**20, grows="losses, In[5] line 7"),
            {},
            "memory of rank 0 grows by 12 MiB each step; `losses` (In[5] line 7) gets longer: "
            "keep `.item()` or `.detach()` of what you append.",
        ),
        (
            StepFacts(growth=12 * 2**20),
            {},
            "memory of rank 0 grows by 12 MiB each step; find what keeps it with %dist_memory.",
        ),
        (
            StepFacts(compiles=3),
            {},
            "torch.compile compiled 3 times in these steps: use dynamic=True, or inputs of one "
            "shape; TORCH_LOGS=recompiles says why.",
        ),
    ],
)
def test_a_rule(facts: StepFacts, parts: dict[str, float], told: str) -> None:
    assert both(facts, **parts) == [f"Next: {told}"]


def test_at_most_two_are_told_the_largest_first() -> None:
    facts = StepFacts(growth=2**24, workers=0, cores=8, pauses=0.3)
    told = both(facts, input=0.4, compute=0.3)
    assert [line.split()[1] for line in told] == ["memory", "num_workers"]
