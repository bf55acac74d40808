"""A collective that not all ranks begin: who is missing is named, and what it does."""

from __future__ import annotations

import pytest

from .scene import Case, Scene

WAITS = "wait in all_reduce #N (20 × float32), begun by `dist.all_reduce(torch.ones(20))` at In[9]"
SLEEPS = "import time\nif rank == 1:\n    time.sleep(600)\n"
STEP = "dist.all_reduce(torch.ones(20))"

SCENES = [
    Case(
        "never joined",
        f"if rank != 1:\n    {STEP}",
        f"Ranks 0,2 {WAITS} line 2. Rank 1 never began it: it has finished its cell.",
    ),
    Case(
        "sleeps",
        f"{SLEEPS}{STEP}",
        f"Ranks 0,2 {WAITS} line 4. Rank 1 has not begun it: it is in `time.sleep`, In[9] line 3.",
        stuck=False,
    ),
    Case(
        "exception",
        f"if rank == 1:\n    raise ValueError('bad batch')\n{STEP}",
        f"Ranks 0,2 {WAITS} line 3. "
        "Rank 1 never began it: it ended its cell with ValueError: bad batch.",
    ),
    Case(
        "sys.exit",
        f"import sys\nif rank == 1:\n    sys.exit(3)\n{STEP}",
        f"Ranks 0,2 {WAITS} line 4. Rank 1 never began it: it ended its cell with SystemExit: 3.",
    ),
    Case(
        "early return",
        f"def step():\n    if rank == 1:\n        return\n    {STEP}\nstep()",
        f"Ranks 0,2 {WAITS} line 4. Rank 1 never began it: it has finished its cell.",
    ),
    Case(
        "two ranks missing",
        f"if rank == 0:\n    {STEP}",
        "Rank 0 waits in all_reduce #N (20 × float32), begun by `dist.all_reduce(torch.ones(20))` "
        "at In[9] line 2. Ranks 1-2 never began it: they have finished their cells.",
    ),
    Case(
        "async_op that is waited for",
        "if rank == 0:\n    work = dist.all_reduce(torch.ones(7), async_op=True)\n    work.wait()",
        "Rank 0 waits in all_reduce #N (7 × float32) at `work.wait()`, In[9] line 3. "
        "Ranks 1-2 never began it: they have finished their cells.",
        with_line="Rank 0 waits in all_reduce #N (7 × float32), begun by "
        "`work = dist.all_reduce(torch.ones(7), async_op=True)` at In[9] line 2. "
        "Ranks 1-2 never began it: they have finished their cells.",
    ),
    Case(
        "async_op that is left behind",
        "if rank == 0:\n    work = dist.all_reduce(torch.ones(7), async_op=True)",
        "Rank 0 has begun all_reduce #N (7 × float32) by "
        "`work = dist.all_reduce(torch.ones(7), async_op=True)` at In[9] line 2. "
        "Ranks 1-2 never began it: they have finished their cells.",
    ),
    Case(
        "a group of some ranks",
        "own = dist.new_group([0, 1])\nif rank == 0:\n    dist.barrier(own)",
        "Rank 0 waits in barrier #N (group of ranks 0-1), begun by `dist.barrier(own)` at "
        "In[9] line 3. Rank 1 never began it: it has finished its cell.",
    ),
    Case(
        "a group with a name",
        "own = dist.new_group([0, 1], group_desc='dp0')\n"
        "if rank == 0:\n    dist.all_reduce(torch.ones(3), group=own)",
        "Rank 0 waits in all_reduce #N (3 × float32, group dp0), begun by "
        "`dist.all_reduce(torch.ones(3), group=own)` at In[9] line 3. "
        "Rank 1 never began it: it has finished its cell.",
    ),
    Case(
        "new_group that not all call",
        "if rank == 2:\n    dist.new_group([0, 2])",
        "Rank 2 waits in new_group, begun by `dist.new_group([0, 2])` at In[9] line 2. "
        "Ranks 0-1 never began it: they have finished their cells.",
    ),
]


@pytest.mark.parametrize("case", SCENES, ids=lambda case: case.name)
async def test_never_joined(scene: Scene, case: Case) -> None:
    verdict = await scene.says(case.cell, case.sentence, case.with_line)
    assert verdict.stuck == case.stuck
