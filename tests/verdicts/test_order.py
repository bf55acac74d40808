"""Groups and messages that ranks use in different orders."""

from __future__ import annotations

import pytest

from .scene import Case, Scene

PAIRS = "one, two = dist.new_group([0, 1]), dist.new_group([0, 1, 2])\nx = torch.ones(3)\n"
SCENES = [
    Case(
        "two groups in different orders",
        f"{PAIRS}order = (one, two) if rank == 0 else (two, one)\n"
        "for group in order:\n    if rank < 2 or group is two:\n"
        "        dist.all_reduce(x, group=group)",
        "The ranks wait for each other: rank 0 waits in all_reduce #N (3 × float32, group of "
        "ranks 0-1) for rank 1 at In[9] line 6 and ranks 1-2 wait in all_reduce #N (3 × float32) "
        "for rank 0 at In[9] line 6.",
    ),
    Case(
        "a circle of messages",
        "dist.recv(torch.ones(1), (rank + 1) % 3)",
        "The ranks wait for each other: rank 0 waits in recv from rank 1 at In[9] line 1, "
        "rank 1 waits in recv from rank 2 at In[9] line 1 and "
        "rank 2 waits in recv from rank 0 at In[9] line 1.",
    ),
    Case(
        "a message that nobody sends",
        "if rank == 0:\n    dist.recv(torch.ones(1), 2)",
        "Rank 0 waits in recv from rank 2, begun by `dist.recv(torch.ones(1), 2)` at In[9] line 2. "
        "Rank 2 is not sending: it has finished its cell.",
    ),
    Case(
        "a message that is not sent yet",
        "import time\nif rank == 0:\n    dist.recv(torch.ones(1), 2)\n"
        "if rank == 2:\n    time.sleep(600)",
        "Rank 0 waits in recv from rank 2, begun by `dist.recv(torch.ones(1), 2)` at In[9] line 3. "
        "Rank 2 is not sending: it is in `time.sleep`, In[9] line 5.",
        stuck=False,
    ),
]


@pytest.mark.parametrize("case", SCENES, ids=lambda case: case.name)
async def test_order(scene: Scene, case: Case) -> None:
    assert (await scene.says(case.cell, case.sentence)).stuck == case.stuck
