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
    code = "%%distributed\nt = torch.ones(1, device=device)\ndist.all_reduce(t)\nprint(int(t))"
    assert "[0] 1" in notebook.ok(code).lines


def test_what_filled_the_memory_is_told_and_kept(notebook: Notebook) -> None:
    notebook.ok("%dist_init -n 1")
    said = notebook.fails(
        "%%distributed\n"
        "free, _ = torch.cuda.mem_get_info()\n"
        "kept = torch.empty(free // 2, dtype=torch.uint8, device=device)\n"
        "more = torch.empty(free, dtype=torch.uint8, device=device)"
    )
    assert re.search(r"The most memory of rank 0 was allocated at In\[\d+\] line 4 \(", said), said
    file = re.search(r"allocations of rank 0 are in (\S+)", said)
    assert file, said
    snapshot = pickle.loads(Path(file[1]).read_bytes())
    assert snapshot["segments"]
    assert any(snapshot["device_traces"])
    assert "[0] 1" in notebook.ok("%%distributed\nprint(1)").lines


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
