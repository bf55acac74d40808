"""Submissions and the GPUs that were seen last."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_dist_server.common.protocol.sampler_messages import Gpu, Inventory
from jupyter_dist_server.jobs import gpu_list
from jupyter_dist_server.jobs.gpu_list import keep_gpus, kept_gpus

from ..fake_nvml.build import State
from .queue_driver import Queue


def test_the_driver_is_asked_only_if_the_gpus_seen_last_would_not_do(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=2)
    queue.submit("-H", "-G", "1", "true")
    fake_nvml.log.unlink()
    queue.submit("-H", "-G", "2", "true")
    named = queue.submit("-H", "--gpu-ids", "1", "true")
    assert queue.show(named)["gpu_ids"] == ["GPU-fake-1"]
    assert not fake_nvml.log.exists()
    assert "too large" in queue.run("submit", "-G", "3", "true", code=2)
    assert fake_nvml.log.exists()
    fake_nvml.write(gpus=3)
    queue.submit("-H", "-G", "3", "true")
    said = queue.run("submit", "--gpu-ids", "1,GPU-fake-1", "true", code=2)
    assert "--gpu-ids names GPU 1 twice." in said


def test_in_a_slurm_allocation_its_gpus_are_the_machine(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvml.write(gpus=4)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_GPUS", "1,3")
    job = queue.submit("-H", "-G", "1", "true")
    assert queue.show(job)["gpu_ids"] == ["GPU-fake-1", "GPU-fake-3"]
    assert "2 are suitable" in queue.run("submit", "-G", "3", "true", code=2)
    assert "no GPU 0" in queue.run("submit", "--gpu-ids", "0", "true", code=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    masked = queue.submit("-H", "-G", "1", "true")
    assert queue.show(masked)["gpu_ids"] == ["GPU-fake-3"]


def test_a_list_of_before_the_last_boot_and_one_with_mig_instances_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu(
        index=0,
        uuid="GPU-a",
        name="NVIDIA H100",
        memory_total=80 << 30,
        pci_bus_id="",
        compute_capability="9.0",
    )
    there = Inventory(gpus=(gpu,), driver="580.1")
    keep_gpus(tmp_path, there)
    assert kept_gpus(tmp_path) == there
    with monkeypatch.context() as later:
        later.setattr(gpu_list, "boot_id", lambda: "another")
        assert kept_gpus(tmp_path) is None
    part = Gpu(
        index=0,
        uuid="MIG-a",
        name="NVIDIA H100 MIG 1g.10gb",
        memory_total=10 << 30,
        pci_bus_id="",
        compute_capability="9.0",
        mig=0,
        parent="GPU-a",
    )
    keep_gpus(tmp_path, Inventory(gpus=(part,)))
    assert kept_gpus(tmp_path) is None
    (tmp_path / "gpus.json").write_text("{")
    assert kept_gpus(tmp_path) is None
