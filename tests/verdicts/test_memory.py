"""What is said of the memory of ranks."""

from __future__ import annotations

import msgspec

from jupyter_dist_server.common.protocol.ranks.memory_messages import (
    EstimateReply,
    Held,
    MemoryReply,
    TorchMemory,
)
from jupyter_dist_server.verdicts.memory_sentences import (
    estimate_sentence,
    memory_rows,
    memory_sentences,
    silent_sentences,
)

MIB = 1 << 20
GIB = 1 << 30


def rank(held: dict[str, int], torch: TorchMemory | None = None) -> MemoryReply:
    return MemoryReply(
        busy=False,
        resident=200 * MIB,
        proportional=50 * MIB,
        torch=torch,
        held=[Held(name, nbytes, 0) for name, nbytes in held.items()],
        in_all=sum(held.values()),
    )


def test_a_rank_that_holds_more_is_named_with_the_variable() -> None:
    usual = rank({"model": GIB})
    said = {0: usual, 1: rank({"cache": 2 * GIB, "model": GIB}), 2: usual}
    more = "2 GiB more than those of the other ranks, most of it in `cache`."
    assert list(memory_sentences(said)) == [f"The variables of rank 1 hold {more}"]
    assert not list(memory_sentences({0: usual, 1: usual}))
    a_little_more = rank({"model": GIB, "batch": 60 * MIB})
    assert not list(memory_sentences({0: usual, 1: a_little_more}))
    busy = msgspec.structs.replace(said[1], busy=True, held=[], in_all=0)
    assert not list(memory_sentences({0: usual, 1: busy, 2: usual}))


def test_ranks_that_do_not_tell() -> None:
    assert list(silent_sentences(range(4), {0: rank({})}, {2: "killed", 3: "killed"})) == [
        "Ranks 2-3 are dead.",
        "Rank 1 did not tell its memory; see the log.",
    ]


def test_ranks_on_gpus() -> None:
    use = TorchMemory(allocated=GIB, reserved=2 * GIB, peak=GIB, total=80 * GIB)
    rows = memory_rows({0: rank({"model": GIB}, use), 1: rank({})})
    assert rows[0][3:7] == ("allocated", "reserved", "peak", "GPU")
    assert rows[1][3:] == ("1 GiB", "2 GiB", "1 GiB", "80 GiB", "1 GiB", "model 1 GiB")
    assert rows[2][3:] == ("-", "-", "-", "-", "0 B", "-")


def test_a_step_that_does_not_fit() -> None:
    step = EstimateReply(parameters=30 * GIB, optimizer=60 * GIB, peak=90 * GIB)
    use = TorchMemory(allocated=0, reserved=0, peak=0, total=80 * GIB)
    said = estimate_sentence("model", step, {0: rank({}, use), 1: rank({}, use), 2: rank({})})
    assert said == [
        "A step of `model` takes about 90 GiB on each rank: parameters 30 GiB, optimizer 60 GiB.",
        "This is more than the GPU of ranks 0-1 has.",
    ]
