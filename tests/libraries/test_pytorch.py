"""PyTorch's tutorials, and what builds on them, run on ranks as they run under torchrun."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..notebook_driver import Notebook
from .program import FSDP2, run, run_as_cell, run_as_script

PLAIN_ONLY = True


def test_ddp(two: Notebook) -> None:
    assert run(two, "ddp").startswith("losses ")


def test_torchrun_script(two: Notebook, tmp_path: Path) -> None:
    options = f"--lr 0.05 --snapshot {tmp_path}/snapshot.pt"
    assert "epoch 1: " in run_as_script(two, "torchrun_script", f"{options} --epochs 2")
    assert "epoch 3: " in run_as_script(two, "torchrun_script", f"{options} --epochs 4")


def test_uneven_inputs(two: Notebook) -> None:
    assert "after 4 steps" in run(two, "uneven")


@FSDP2
def test_fsdp2(two: Notebook) -> None:
    assert run(two, "fsdp2").startswith("loss ")


def test_tensor_parallel(two: Notebook) -> None:
    assert "as without a mesh" in run(two, "tensor_parallel")


def test_distributed_checkpoint(two: Notebook) -> None:
    assert "loaded what was saved" in run(two, "checkpoint")


def test_pipelining(two: Notebook) -> None:
    assert "through 2 stages" in run(two, "pipeline")


def test_dataloader_workers(two: Notebook) -> None:
    said = run_as_script(two, "dataloader")
    assert said == "all 24 samples by fork, spawn, forkserver"
    assert run_as_script(two, "dataloader", "spawn") == "all 24 samples by spawn"


def test_dataloader_workers_by_fork_know_classes_of_a_cell(two: Notebook) -> None:
    two.ok("%%distributed\nimport sys\nsys.argv[1:] = ['fork']")
    assert run_as_cell(two, "dataloader") == "all 24 samples by fork"
    two.ok("%%distributed\nsys.argv[1:] = []")


@pytest.mark.skipif(not shutil.which("c++"), reason="torch.compile needs a C++ compiler")
def test_compile(two: Notebook) -> None:
    assert "compiled and not" in run(two, "compiled")
