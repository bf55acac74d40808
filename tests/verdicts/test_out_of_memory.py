"""What is said of a cell that ran out of memory."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from jupyter_dist_server.common.protocol.ranks.evidence import CodePlace
from jupyter_dist_server.common.protocol.ranks.memory_messages import (
    Allocated,
    Exhausted,
    Held,
    MemoryReply,
    TorchMemory,
)
from jupyter_dist_server.verdicts.memory_sentences import is_out_of_memory, out_of_memory_sentences

GIB = 1 << 30
ON_CPU = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: "
    "you tried to allocate 21474836480 bytes. Error code 12 (Cannot allocate memory)"
)
ON_GPU = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.10 GiB of "
    "which 9.03 GiB is free. Of the allocated memory 69.30 GiB is allocated by PyTorch, and 1 GiB "
    "is reserved by PyTorch but unallocated."
)
OF_NUMPY = "Unable to allocate 20.0 GiB for an array with shape (5368709120,) and data type float32"


def rank(held: dict[str, int], torch: TorchMemory | None = None) -> MemoryReply:
    return MemoryReply(
        busy=False,
        resident=0,
        proportional=None,
        torch=torch,
        held=[Held(name, nbytes, 0) for name, nbytes in held.items()],
        in_all=sum(held.values()),
    )


@pytest.mark.parametrize(
    ("name", "value", "amount"),
    [
        ("RuntimeError", ON_CPU, "20 GiB"),
        ("OutOfMemoryError", ON_GPU, "20.00 GiB"),
        ("_ArrayMemoryError", OF_NUMPY, "20.0 GiB"),
    ],
)
def test_what_was_asked_for(name: str, value: str, amount: str) -> None:
    assert is_out_of_memory(name, value)
    said = out_of_memory_sentences({1: value}, {1: rank({"cache": 2 * GIB, "model": GIB})})
    held = "its variables hold 3 GiB (`cache` 2 GiB, `model` 1 GiB)."
    assert list(said) == [f"Rank 1 asked for {amount}; {held}"]


def test_ranks_that_differ_and_on_gpus() -> None:
    use = TorchMemory(allocated=70 * GIB, reserved=71 * GIB, peak=75 * GIB, total=80 * GIB)
    same = rank({"model": GIB}, use)
    assert list(out_of_memory_sentences(dict.fromkeys(range(3), ON_GPU), {0: same, 1: same})) == [
        "Ranks 0-1 asked for 20.00 GiB; the variables of each hold 1 GiB (`model` 1 GiB).",
        "torch has allocated 70 GiB of 80 GiB on the GPU.",
    ]
    full = replace(same, exhausted=Exhausted([], "", 78 * GIB))
    said = [*out_of_memory_sentences({0: ON_GPU}, {0: full})]
    assert said[1:] == ["torch had allocated 78 GiB of 80 GiB on the GPU."], "now it has less"
    assert "torch has allocated 70 GiB of 80 GiB on the GPU." in [
        *out_of_memory_sentences({0: OF_NUMPY}, {0: full})
    ]
    assert list(out_of_memory_sentences({3: ""}, {3: rank({})})) == [
        "The variables of rank 3 hold no tensors or arrays."
    ]
    made = MemoryReply(
        busy=False,
        resident=0,
        proportional=None,
        held=[Held("cache", GIB, 0, 7), Held("x", GIB, 0)],
        in_all=2 * GIB,
    )
    assert list(out_of_memory_sentences({3: ""}, {3: made})) == [
        "The variables of rank 3 hold 2 GiB (`cache` 1 GiB made in In[7], `x` 1 GiB)."
    ]
    assert not is_out_of_memory("RuntimeError", "shapes cannot be multiplied")


def test_the_lines_that_filled_the_memory_of_gpus() -> None:
    lines = [
        Allocated(CodePlace("In[9]", 5), 60 * GIB),
        Allocated(CodePlace("model.py", 31), 2 * GIB),
    ]

    def full(rank: int, snapshot: str) -> MemoryReply:
        exhausted = Exhausted(lines, snapshot and snapshot.format(rank))
        return MemoryReply(busy=False, resident=0, proportional=None, held=[], exhausted=exhausted)

    def said(error: str, ranks: range, snapshot: str = "/p/memory-{}.pickle") -> list[str]:
        replies = {rank: full(rank, snapshot) for rank in ranks}
        return list(out_of_memory_sentences(dict.fromkeys(ranks, error), replies))[1:]

    at = "was allocated at In[9] line 5 (60 GiB), model.py line 31 (2 GiB)."
    viewer = "until the pool stops: https://pytorch.org/memory_viz shows them."
    assert said(ON_GPU, range(1)) == [
        f"The most memory of rank 0 {at}",
        f"The allocations of rank 0 are in /p/memory-0.pickle {viewer}",
    ]
    assert said(ON_GPU, range(2)) == [
        f"The most memory of ranks 0-1 {at}",
        f"The allocations of ranks 0-1 are in /p/memory-*.pickle {viewer}",
    ]
    replies = {0: full(0, "/p/memory-{}.pickle"), 2: full(2, "/q/memory-{}.pickle")}
    told = out_of_memory_sentences(dict.fromkeys(replies, ON_GPU), replies, {0: "n1", 2: "n2"})
    assert [*told][-2:] == [
        f"The allocations of rank 0 are in /p/memory-0.pickle on n1 {viewer}",
        f"The allocations of rank 2 are in /q/memory-2.pickle on n2 {viewer}",
    ]
    assert said(ON_GPU, range(1), "") == [f"The most memory of rank 0 {at}"]
    assert said(OF_NUMPY, range(1)) == []
