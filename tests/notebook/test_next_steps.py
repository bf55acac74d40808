"""A profile ends with what to do next: each rule on a real program that is slow."""

from __future__ import annotations

import re

import pytest

from ..notebook_driver import Notebook
from .test_profile import two as two

PLAIN_ONLY = True
"""The server has no part in it."""

LOOP = "%%distributed --profile\n"
PROGRAMS = {
    "input": (
        "class Slow(torch.utils.data.Dataset):\n"
        "    def __len__(self):\n        return 5\n"
        "    def __getitem__(self, place):\n        time.sleep(0.3)\n"
        "        return torch.ones(10)\n"
        "for x in torch.utils.data.DataLoader(Slow()):\n    step(x)",
        r"num_workers is 0, and rank \d waits \d+ % of a step for data: use num_workers=\d\.",
    ),
    "a slow rank": (
        "for _ in range(4):\n    with record_function('data'):\n        time.sleep(0.5 * rank)\n"
        "    step(torch.ones(4, 10))",
        r"`data` takes \S+ m?s longer on rank 1: give all ranks the same work there\.",
    ),
    "small operations": (
        "x = torch.ones(4)\nfor _ in range(4):\n    for _ in range(3000):\n        x.add_(1)\n"
        "    step(torch.ones(4, 10))",
        r"a step runs 3,\d+ operations of \S+ ms, and starting them takes longer: "
        r"use larger batches, or torch\.compile\.",
    ),
    "communication": (
        "x = torch.ones(8_000_000)\nfor _ in range(4):\n    dist.all_reduce(x)\n"
        "    optimizer.step()",
        r"\d+ % of a step is communication during which nothing is computed: "
        r"wrap the model in DistributedDataParallel",
    ),
    "tiny collectives": (
        "x = torch.ones(1)\nfor _ in range(4):\n    for _ in range(300):\n"
        "        dist.all_reduce(x)\n    optimizer.step()",
        r"a step runs 300 collectives of 4 B: join them, such as by torch\.cat and one all_",
    ),
    "garbage": (
        "import gc\nkept = [[] for _ in range(300_000)]\nfor _ in range(5):\n"
        "    for _ in range(10):\n        gc.collect()\n    step(torch.ones(4, 10))\ndel kept",
        r"Python collects garbage for \d+ % of a step: call gc\.freeze\(\) before the loop",
    ),
    "memory": (
        "outputs = []\nfor _ in range(8):\n    outputs.append(torch.ones(2_000_000))\n"
        "    step(torch.ones(4, 10))\ndel outputs",
        r"memory of rank \d grows by \d.* MiB each step; `outputs` \(In\[\d+\] line 4\) gets "
        r"longer: keep",
    ),
    "recompiles": (
        "@torch.compile(backend='eager', dynamic=False)\ndef double(x):\n    return 2 * x\n"
        "for size in range(2, 7):\n    double(torch.ones(size))\n    step(torch.ones(4, 10))",
        r"torch\.compile compiled 4 times in these steps: use dynamic=True",
    ),
}

QUICK = {"a slow rank", "memory", "recompiles"}
"""Those that are always run; the rules have tests of their own, on made-up profiles."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in PROGRAMS],
)
def test_a_slow_program(two: Notebook, name: str) -> None:
    code, told = PROGRAMS[name]
    result = two.ok(LOOP + code)
    steps = [line for line in result.lines[1:3] if line.startswith("Next: ")]
    assert any(re.match(f"Next: {told}", line) for line in steps), result.shown


def test_a_balanced_program_is_told_nothing(two: Notebook) -> None:
    result = two.ok(
        LOOP + "x = torch.ones(1500, 1500)\nfor _ in range(4):\n    x @ x\n    optimizer.step()"
    )
    assert "Next: " not in result.text, result.shown


def test_a_profile_is_compared_with_the_last_one(two: Notebook) -> None:
    code = "for _ in range(6):\n    time.sleep({})\n    step(torch.ones(4, 10))"
    first = two.ok(LOOP.replace("\n", " --compare\n") + code.format(0.05))
    assert re.search("no earlier profile of this cell|(than|as) before", first.text), first.shown
    again = two.ok(LOOP.replace("\n", " --compare\n") + code.format(0.2))
    (told,) = (line for line in again.lines if "than before" in line)
    assert re.match(r"A step takes \d+ ms, \d+ % more than before", told), told
    assert re.search(r": other \d+ ms more\.$", told), told
    shown = " ".join(text for one in (first, again) for text in one.mime("text/plain"))
    both = " ".join(re.findall(r"profile-cell-[\d-]+\.json\.gz", shown))
    shell = two.ok(f"!jdist profile compare {both} --fail-if-slower 5%; echo code $?")
    assert told in shell.text and "code 1" in shell.text
