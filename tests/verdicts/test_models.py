"""Wrapped models, whose collectives no line of the user's calls by name."""

from __future__ import annotations

import pytest

from .scene import Case, Scene

MODEL = (
    "from torch.nn.parallel import DistributedDataParallel as DDP\n"
    "model = DDP(torch.nn.Linear(4, 4))\n"
    "loss = model(torch.ones(2, 4)).sum()\n"
)
WAIT = (
    "wait in all_reduce #N (20 × float32), begun by `loss.backward()` at In[9] line {}. Rank 2 {}"
)
FSDP = (
    "from torch.distributed.fsdp import fully_shard\n"
    "from torch.distributed.device_mesh import init_device_mesh\n"
    "model = torch.nn.Linear(6, 6)\n"
    "fully_shard(model, mesh=init_device_mesh('cpu', (3,)))\n"
)
SCENES = [
    Case(
        "backward that a rank leaves out",
        f"{MODEL}if rank != 2:\n    loss.backward()",
        f"Ranks 0-1 {WAIT.format(5, 'never began it: it has finished its cell.')}",
    ),
    Case(
        "backward while a rank sleeps",
        f"import time\n{MODEL}if rank == 2:\n    time.sleep(600)\nloss.backward()",
        f"Ranks 0-1 {WAIT.format(7, 'has not begun it: it is in `time.sleep`, In[9] line 6.')}",
        stuck=False,
    ),
    Case(
        "backward, and an error on a rank",
        f"{MODEL}if rank == 2:\n    raise RuntimeError('NaN in the loss')\nloss.backward()",
        "Ranks 0-1 "
        + WAIT.format(6, "never began it: it ended its cell with RuntimeError: NaN in the loss."),
    ),
    Case(
        "a model that a rank does not wrap",
        "from torch.nn.parallel import DistributedDataParallel as DDP\n"
        "if rank:\n    model = DDP(torch.nn.Linear(4, 4))",
        "Ranks 1-2 wait in all_gather #N (1 × int64), begun by "
        "`model = DDP(torch.nn.Linear(4, 4))` at In[9] line 3. "
        "Rank 0 never began it: it has finished its cell.",
    ),
    Case(
        "forward of FSDP2 that a rank leaves out",
        f"{FSDP}if rank != 1:\n    model(torch.ones(2, 6))",
        "Ranks 0,2 wait in all_gather #N (14 × float32), begun by `model(torch.ones(2, 6))` at "
        "In[9] line 6. Rank 1 never began it: it has finished its cell.",
    ),
    Case(
        "forward of FSDP2 while a rank sleeps",
        f"import time\n{FSDP}if rank == 1:\n    time.sleep(600)\nmodel(torch.ones(2, 6))",
        "Ranks 0,2 wait in all_gather #N (14 × float32), begun by `model(torch.ones(2, 6))` at "
        "In[9] line 8. Rank 1 has not begun it: it is in `time.sleep`, In[9] line 7.",
        stuck=False,
    ),
]


@pytest.mark.parametrize("case", SCENES, ids=lambda case: case.name)
async def test_models(scene: Scene, case: Case) -> None:
    assert (await scene.says(case.cell, case.sentence)).stuck == case.stuck
