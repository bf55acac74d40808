"""Ranks on real GPUs: ``pytest -m gpu``, on a machine with at least one of them."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.gpus.readers.read_gpu_state import read_gpu_state

from ..environment import environment
from ..gpus.held_memory import on_gpu
from ..notebook_driver import Notebook, plain_notebook

pytestmark = pytest.mark.gpu

REDUCE = "t = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(int(t))"


@pytest.fixture
def notebook(tmp_path: Path) -> Iterator[Notebook]:
    """Return a notebook with no pool."""
    notebook = plain_notebook(environment(tmp_path), tmp_path)
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


async def test_a_rank_for_each_gpu_talks_by_nccl(notebook: Notebook) -> None:
    gpus = (await read_gpu_state()).inventory.gpus
    started = notebook.ok("%dist_init")
    assert "cpu:gloo,cuda:nccl" in started.shown
    said = notebook.ok(
        "%%distributed --per-rank\n"
        "import os\n"
        "t = torch.ones(1, device=device) * (rank + 1)\n"
        "dist.all_reduce(t)\n"
        "print(gpu_id, device, local_rank, os.environ['CUDA_VISIBLE_DEVICES'], int(t))"
    ).lines
    visible = ",".join(str(gpu.index) for gpu in gpus)
    total = sum(range(1, len(gpus) + 1))
    for number, gpu in enumerate(gpus):
        expected = f"{gpu.index} cuda:{number} {number} {visible} {total}"
        assert any(expected in line for line in said), said


async def test_a_library_that_uses_its_local_rank_is_on_its_gpu(notebook: Notebook) -> None:
    (gpu, *_) = (await read_gpu_state()).inventory.gpus
    notebook.ok(f"%dist_init -n 1 --gpu-ids {gpu.index}")
    code = "%%distributed\nprint(torch.cuda.get_device_properties(f'cuda:{local_rank}').uuid)"
    assert gpu.uuid.removeprefix("GPU-") in notebook.ok(code).text


async def test_two_ranks_on_one_gpu_talk_by_gloo(notebook: Notebook) -> None:
    (gpu, *_) = (await read_gpu_state()).inventory.gpus
    started = notebook.ok(f"%dist_init -n 2 --gpu-ids {gpu.index}").shown
    assert "gloo" in started
    assert "share" in started
    said = notebook.ok(
        "%%distributed\nt = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(int(t), device)"
    )
    assert "[0-1] 2 cuda:0" in said.lines


def test_a_rank_on_the_cpu_sees_no_gpu_and_the_others_have_a_group_on_nccl(
    notebook: Notebook,
) -> None:
    assert "Rank 1 runs on the CPU" in notebook.ok("%dist_init -n 2 --cpu-ranks 1").shown
    said = notebook.ok(
        "%%distributed\n"
        "on_gpus = dist.new_group([0], backend='nccl')\n"
        "t = torch.ones(1, device=device)\n"
        "if rank == 0:\n    dist.all_reduce(t, group=on_gpus)\n"
        "u = torch.ones(1)\ndist.all_reduce(u)\n"
        "print(device, torch.cuda.device_count(), gpu_id is None, int(t), int(u))"
    )
    assert [" ".join(line.split()) for line in said.lines] == [
        "[0] cuda:0 1 False 1 2",
        "[1] cpu 0 True 1 2",
    ]


def test_a_tensor_comes_to_the_notebook_on_the_cpu_and_it_is_said(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    notebook.ok("%%distributed\nt = torch.arange(4, device=device)")
    assert "CPU" in notebook.ok("%dist_pull t").shown
    assert "cpu [0, 1, 2, 3]" in notebook.ok("print(t.device, t.tolist())").text


def test_a_stopped_cell_leaves_nccl_in_order(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    assert "Timed out after" in notebook.fails(
        "%%distributed --timeout 3\nimport time\nwhile True:\n    time.sleep(0.01)"
    )
    assert "[0] 1" in notebook.ok(f"%%distributed\n{REDUCE}").lines


def test_what_filled_the_memory_is_told_and_kept(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    said = notebook.fails(
        "%%distributed\n"
        "free, _ = torch.cuda.mem_get_info()\n"
        "kept = torch.empty(free // 2, dtype=torch.uint8, device=device)\n"
        "more = torch.empty(free, dtype=torch.uint8, device=device)"
    )
    assert re.search(r"The most memory of rank 0 was allocated at In\[\d+\] line 3 \(", said), said
    had = re.search(r"torch had allocated ([\d.]+) GiB of ([\d.]+) GiB on the GPU", said)
    assert had and 0.4 < float(had[1]) / float(had[2]) < 0.6, said
    file = re.search(r"allocations of rank 0 are in (\S+)", said)
    assert file, said
    snapshot = pickle.loads(Path(file[1]).read_bytes())
    assert snapshot["segments"]
    assert any(snapshot["device_traces"])
    assert "[0] 1" in notebook.ok("%%distributed\nprint(1)").lines


def test_a_rank_whose_cuda_is_lost_is_told_and_can_be_replaced(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    beyond = "x = torch.zeros(4, device=device)\nprint(x[torch.tensor([10], device=device)])"
    for cell in (beyond, "print(torch.ones(1, device=device) + 1)"):
        said = notebook.fails(f"%%distributed\n{cell}")
        assert re.search(r"CUDA no longer works on rank 0 \(GPU \d+ .+\)\.", said), said
        assert "Replace rank 0 with %dist_restart --ranks 0. Its variables are then lost." in said
        assert "CUDA_LAUNCH_BLOCKING=1" in said
    notebook.ok("%dist_restart --ranks 0")
    assert "no longer" not in notebook.fails("%%distributed\nraise ValueError('CUDA error: no')")
    assert "[0] 1" in notebook.ok(f"%%distributed\n{REDUCE}").lines


@pytest.mark.parametrize(
    ("option", "wait"), [("", "torch.cuda.synchronize()"), ("--profile ", "pass")]
)
def test_a_rank_whose_gpu_does_not_end_goes_on_answering(
    notebook: Notebook, option: str, wait: str
) -> None:
    notebook.ok("%dist_init -n 1")
    notebook.ok("%%distributed --profile\npass")  # which imports what a profile needs
    said = notebook.fails(
        f"%%distributed {option}--timeout 3\ntorch.cuda._sleep(80 * 10**9)  # about 40 s\n{wait}"
    )
    assert "Rank 0 did not stop" in said, said
    assert "%dist_restart --ranks 0" in said
    begun = notebook.run(
        f"%%distributed\n{REDUCE}",
        until=lambda r: "Waiting to begin: rank 0 still runs In[" in r.shown,
        act=notebook.interrupt,
    )
    assert "Waiting to begin: rank 0 still runs In[" in begun.shown
    assert notebook.ok("%dist_restart --ranks 0").lines == []
    assert "[0] 1" in notebook.ok(f"%%distributed\n{REDUCE}").lines


def test_copies_from_the_gpu_are_not_taken_for_computation(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    notebook.ok("%%distributed\nblock = torch.ones(2**28, device=device)\nblock.cpu()")
    shown = notebook.ok(
        "%%distributed --profile\nfor _ in range(4):\n    block.cpu()\n    block + 1"
    ).shown
    assert re.search(
        r"\d+ % of the cell is copying between the CPU and the GPU, most of it in .*line 3\.", shown
    ), shown
    assert "Warning" not in shown


def test_a_program_that_asks_for_nccl_is_told_that_it_has_it(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    code = "dist.init_process_group('nccl')\nprint(dist.get_backend())"
    assert "[0] nccl" in notebook.ok(f"%%distributed\n{code}").lines
    on_both = "for where in ('cpu', device):\n    dist.all_reduce(torch.ones(1, device=where))"
    notebook.ok(f"%%distributed\n{on_both}")


async def test_status_shows_the_gpu_as_it_is(notebook: Notebook) -> None:
    (gpu, *_) = (await read_gpu_state()).inventory.gpus
    notebook.ok("%dist_init -n 1")
    notebook.ok("%%distributed\nblock = torch.empty(2**30, dtype=torch.uint8, device=device)")
    said = notebook.ok("%dist_status").text
    assert gpu.name in said
    assert "this pool, rank 0" in said
    assert "1 GiB" in said


async def test_a_gpu_that_a_foreign_process_uses_is_refused(notebook: Notebook) -> None:
    (gpu, *_) = (await read_gpu_state()).inventory.gpus
    with on_gpu(gpu, 2**30) as (child, _):
        said = notebook.fails(f"%dist_init -n 1 --gpu-ids {gpu.index}")
        assert f"GPU {gpu.label} is used by" in said
        assert f"pid {child.pid}" in said or "container" in said
        notebook.ok(f"%dist_init -n 1 --gpu-ids {gpu.index} --force")
