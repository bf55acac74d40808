"""Where ranks wait for each other outside of collectives: it is named, and Stop ends it."""

from __future__ import annotations

import re

import pytest

from ..notebook_driver import Notebook
from ..result import Result
from .places import stop_at

SERVED_ONLY = True
"""The server has no part in it, but has imported torch for an earlier notebook."""

DDP = "from torch.nn.parallel import DistributedDataParallel as DDP\n"


@pytest.fixture
def two(notebook: Notebook) -> Notebook:
    """Return the notebook with two ranks."""
    if notebook.run("%dist_status").text.count(" idle for ") != 2:
        notebook.run("%dist_shutdown")  # which keeps torch imported
        notebook.ok("%dist_init -n 2")
        # The first model is slow to wrap: torch imports its compiler.
        notebook.ok(f"%%distributed\n{DDP}import time\nmodel = DDP(torch.nn.Linear(2, 2))")
    return notebook


def stop(notebook: Notebook, cell: str, place: str) -> Result:
    result = stop_at(notebook, f"%%distributed\n{cell}", {1: place})
    assert "Rank 1 stopped" in result.shown
    return result


def test_wrapping_a_model(two: Notebook) -> None:
    cell = "if rank == 1:\n    print('in')\n    DDP(torch.nn.Linear(2, 2))"
    error = stop(two, cell, "DistributedDataParallel").error
    assert "rank 1 was waiting in DistributedDataParallel (line 4)" in error
    two.ok("%sync")


def test_backward(two: Notebook) -> None:
    two.ok("%%distributed\nmodel = DDP(torch.nn.Linear(2, 2))")
    cell = (
        "if rank == 1:\n    loss = model(torch.ones(2)).sum()\n    print('in')\n"
        "    try:\n        loss.backward()\n"
        # Of torch's long files, tracebacks take seconds on a busy machine.
        "    except BaseException:\n        raise KeyboardInterrupt from None"
    )
    assert "rank 1 was in backward (line 6)" in stop(two, cell, "backward").error
    two.ok("%sync")


def test_remote_procedure_calls(two: Notebook) -> None:
    start = (
        "%%distributed\nimport torch.distributed.rpc as rpc\n"
        "rpc.init_rpc(f'worker{rank}', rank=rank, world_size=world_size)"
    )
    two.ok(start)
    call = "if rank == 1:\n    print('in')\n    rpc.rpc_sync('worker0', time.sleep, (600,))"
    assert "rank 1 was waiting in rpc_sync (line 4)" in stop(two, call, "rpc_sync").error
    two.ok("%sync")


def test_a_start_of_remote_procedure_calls_that_not_all_ranks_make(two: Notebook) -> None:
    two.ok("%dist_restart")
    two.ok("%%distributed\nimport torch.distributed.rpc as rpc")
    start = "rpc.init_rpc(f'worker{rank}', rank=rank, world_size=world_size)"
    error = stop_at(two, f"%%rank 0\nprint('in')\n{start}", {0: "init_rpc"}).error
    assert "rank 0 was waiting in init_rpc (line 3)" in error
    two.ok("%sync")


def test_gloo_ranks_whose_tensors_differ_in_size(two: Notebook) -> None:
    cell = "%%distributed\ndist.broadcast(torch.ones(2 if rank else 400_000), 0)"
    error = two.fails(cell)
    assert "rank 0 sent 1600000 bytes in a collective where this one expected 8" in error
    assert "Rank 0 had begun broadcast (400000 × float32) as collective #" in error


def test_gloo_ranks_of_which_one_sends_more_than_the_others_expect(notebook: Notebook) -> None:
    """gloo tells the rank that it ends how many bytes came, and not from whom."""
    notebook.run("%dist_shutdown")
    notebook.ok("%dist_init -n 3")
    cell = "%%distributed\ndist.broadcast(torch.ones(2 if rank == 2 else 400_000), 0)"
    error = notebook.fails(cell)
    assert "another rank sent 1600000 bytes in a collective where this one expected 8" in error
    assert re.search(
        r"Ranks? 0(-1)? had begun broadcast \(400000 × float32\) as collective #\d+\.", error
    ), error
