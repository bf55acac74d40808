"""What people start with torchrun on one machine, as cells: each row of their table of commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER

from ..environment import environment
from ..fake_nvml.build import State
from ..notebook_driver import Notebook, plain_notebook

PROGRAM = """\
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
windows = range(48)
loader = DataLoader(windows, batch_size=1, sampler=DistributedSampler(windows, shuffle=False))
mine = [int(batch) for batch in loader]
everything = [None] * dist.get_world_size()
dist.all_gather_object(everything, mine)
print(
    f"rank {rank}/{os.environ['WORLD_SIZE']}, local {local_rank}, "
    f"sees {os.environ['CUDA_VISIBLE_DEVICES'] or 'none'}: {len(mine)} windows"
)
if rank == 0:
    assert sorted(sum(everything, [])) == list(windows)
    print(f"SUCCESS: Got {sum(map(len, everything))} outputs.")
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def kernel(fake_nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    """Return a notebook on a machine with eight GPUs, beside the program."""
    gpus = State(tmp_path_factory.mktemp("nvml") / "state")
    gpus.write(gpus=8, name="NVIDIA H100", memory=80 * 2**30, utilization=0)
    leases, folder = (tmp_path_factory.mktemp(name) for name in ("leases", "folder"))
    variables = gpus.environment(fake_nvml_folder) | {FOLDER: str(leases)}
    notebook = plain_notebook(environment(tmp_path_factory.mktemp("home"), **variables), folder)
    (folder / "example_ddp.py").write_text(PROGRAM)
    notebook.ok("%load_ext jupyter_dist_server")
    yield notebook
    notebook.close()


@pytest.fixture
def notebook(kernel: Notebook) -> Iterator[Notebook]:
    yield kernel
    kernel.run("%dist_shutdown")
    kernel.run("%env CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7")


def lines(notebook: Notebook, cell: str) -> list[str]:
    """Return what a cell prints, without the spaces that align it."""
    return [" ".join(line.split()) for line in notebook.ok(cell).lines]


@pytest.mark.parametrize(
    ("mask", "options", "ranks", "sees"),
    [
        ("", "-n 2", 2, "0,1"),
        ("", "-n 4", 4, "0,1,2,3"),
        ("", "-n 8", 8, "0,1,2,3,4,5,6,7"),
        ("0,1,2,3", "-n 4", 4, "0,1,2,3"),
        ("", "-n 4 --gpu-ids 0,1,2,3", 4, "0,1,2,3"),
        ("0,2,4,6", "-n 4", 4, "0,2,4,6"),
        ("", "-n 4 --gpu-ids 0,2,4,6", 4, "0,2,4,6"),
    ],
)
def test_a_rank_for_each_gpu(
    notebook: Notebook, mask: str, options: str, ranks: int, sees: str
) -> None:
    if mask:
        notebook.ok(f"%env CUDA_VISIBLE_DEVICES={mask}")
    notebook.ok(f"%dist_init {options}")
    said = lines(notebook, "%dist_run example_ddp.py")
    for rank in range(ranks):
        where = f"rank {rank}/{ranks}, local {rank}, sees {sees}"
        assert f"[{rank}] {where}: {48 // ranks} windows" in said, said
    assert "[0] SUCCESS: Got 48 outputs." in said
    used = lines(notebook, "%%distributed\nprint(gpu_id)")
    assert used == [f"[{rank}] {gpu}" for rank, gpu in enumerate(sees.split(","))]


@pytest.mark.parametrize(
    ("mask", "options"),
    [
        ("0,1", "-n 4 --cpu-ranks 2"),
        ("", "-n 4 --gpu-ids 0,1 --cpu-ranks 2"),
        ("", "-n 4 --map 0:0,1:1,2:cpu,3:cpu"),
    ],
)
def test_ranks_0_and_1_on_gpus_and_2_and_3_on_the_cpu(
    notebook: Notebook, mask: str, options: str
) -> None:
    if mask:
        notebook.ok(f"%env CUDA_VISIBLE_DEVICES={mask}")
    started = notebook.ok(f"%dist_init {options}").shown
    assert "Ranks 2-3 run on the CPU, so the backend is gloo" in started
    said = lines(notebook, "%dist_run example_ddp.py")
    for rank, sees in enumerate(("0,1", "0,1", "none", "none")):
        assert f"[{rank}] rank {rank}/4, local {rank}, sees {sees}: 12 windows" in said, said
    used = lines(notebook, "%%distributed\nprint(gpu_id, device.type == 'cpu' or gpu_id)")
    assert used[-1] == "[2-3] None True", used
    table = notebook.ok("%dist_status").shown
    assert "this pool, rank 0" in table and "this pool, rank 1" in table
    again = notebook.ok(f"%dist_init {options}").text
    assert "This notebook's pool of 4 ranks is already running (gloo)." in again
    assert "4 ranks share" not in started
    assert "free" in table, "GPUs 2 to 7 stay free"


def test_ranks_on_gpus_and_on_the_cpu_are_profiled_and_explained_together(
    notebook: Notebook,
) -> None:
    notebook.ok("%dist_init -n 2 --cpu-ranks 1")
    slow = "%%distributed --profile\nif rank:\n    a = torch.ones(2000, 2000)\n    a @ a\n"
    profile = notebook.ok(f"{slow}dist.all_reduce(torch.ones(3))").shown
    assert re.search(r"Trace of all ranks: profile-cell-\d+\.json\.gz", profile), profile
    assert "rank 1 arrives" in profile and "late at all_reduce" in profile, profile
    hang = (
        "%%distributed\nimport time\nif rank:\n    time.sleep(600)\ndist.all_reduce(torch.ones(3))"
    )
    stopped = notebook.run(
        hang,
        until=lambda result: "Rank 1 has not begun it" in result.shown,
        act=notebook.interrupt,
    )
    assert "Rank 0 waits in all_reduce" in stopped.shown, stopped.shown


def test_a_function_may_choose_the_cpu(notebook: Notebook) -> None:
    notebook.ok("import jupyter_dist_server as jds")
    notebook.ok("jds.start_pool(4, place=lambda rank, gpus: gpus[rank] if rank < 2 else 'cpu')")
    assert lines(notebook, "%%distributed\nprint(gpu_id)") == ["[0] 0", "[1] 1", "[2-3] None"]


def test_a_pool_on_the_cpu_needs_no_gpu(notebook: Notebook) -> None:
    started = notebook.ok("%dist_init -n 2 --cpu-ranks 2").shown
    assert "All ranks run on the CPU, as requested." in started
    cell = "%%distributed\nimport os\nprint(os.environ['CUDA_VISIBLE_DEVICES'] == '', gpu_id)"
    assert lines(notebook, cell) == ["[0-1] True None"]
