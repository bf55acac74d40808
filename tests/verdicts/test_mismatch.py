"""Ranks that begin what does not fit together: both sides are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..pool_driver import client_of, request, running
from .scene import Case, Scene

SENDS_LATER = "import time\nif rank == 1:\n    time.sleep(600)\n"
"""gloo compares nothing until data arrive, and ends a rank then; NCCL does not even then."""

SCENES = [
    Case(
        "another collective",
        "if rank == 0:\n    dist.all_reduce(torch.ones(20))\n"
        "else:\n    dist.broadcast(torch.ones(20), 1)",
        "The ranks disagree on collective #N: rank 0 began all_reduce (20 × float32) at "
        "In[9] line 2 and ranks 1-2 began broadcast (20 × float32) at In[9] line 4.",
    ),
    Case(
        "another collective, by async_op",
        "if rank == 0:\n    work = dist.all_reduce(torch.ones(20), async_op=True)\n"
        "else:\n    work = dist.reduce(torch.ones(20), 1, async_op=True)\nwork.wait()",
        "The ranks disagree on collective #N: rank 0 began all_reduce (20 × float32) and "
        "ranks 1-2 began reduce (20 × float32).",
    ),
    Case(
        "a barrier too many",
        "if rank == 2:\n    dist.barrier()\ndist.all_reduce(torch.ones(4))",
        "The ranks disagree on collective #N: ranks 0-1 began all_reduce (4 × float32) at "
        "In[9] line 3 and rank 2 began barrier at In[9] line 2.",
    ),
    Case(
        "another shape",
        f"{SENDS_LATER}dist.broadcast(torch.ones(20 if rank < 2 else 30), 1)",
        "The ranks disagree on collective #N: rank 0 began broadcast (20 × float32) at "
        "In[9] line 4 and rank 2 began broadcast (30 × float32) at In[9] line 4.",
    ),
    Case(
        "another dtype",
        f"{SENDS_LATER}x = torch.ones(20)\ndist.broadcast(x if rank < 2 else x.double(), 1)",
        "The ranks disagree on collective #N: rank 0 began broadcast (20 × float32) at "
        "In[9] line 5 and rank 2 began broadcast (20 × float64) at In[9] line 5.",
    ),
]


@pytest.mark.parametrize("case", SCENES, ids=lambda case: case.name)
async def test_mismatch(scene: Scene, case: Case) -> None:
    assert (await scene.says(case.cell, case.sentence)).stuck == case.stuck


async def test_pairs_that_make_groups_of_one_name(tmp_path: Path) -> None:
    """One of the four hangs in `new_group`, at another line each time."""
    code = """import torch.distributed as dist
for i in range(5):
    ranks = [0, 3] if rank in (0, 3) else [1, 2]
    g = dist.new_group(ranks)
    dist.barrier(group=g)
"""
    async with running(request(tmp_path, num_ranks=4)) as pool, client_of(pool) as client:
        scene = Scene(client)
        async with scene.runs(code, range(4)):
            found = await scene.until(lambda verdict: verdict.kind == "mismatch", "the mismatch")
    assert re.fullmatch(
        r"The ranks disagree on who is in group \d: rank \d has made it of ranks [\d,-]+, "
        r"rank \d of ranks [\d,-]+\.",
        found.sentence,
    )
    assert "of ranks 0,3" in found.sentence and "of ranks 1-2" in found.sentence
