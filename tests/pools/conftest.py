"""A machine with four GPUs that only pretends to have them, for pools of the test's own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_dist_server.jobs.shared_folder import FOLDER

from ..fake_nvml.build import State

MACHINE = {"gpus": 4, "name": "NVIDIA H100 80GB HBM3", "memory": 80 * 2**30}
NAMES = ["GPU-fake-0", "GPU-fake-1", "GPU-fake-2", "GPU-fake-3"]


@pytest.fixture
def gpus(fake_nvml: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    """Return four GPUs, and let this process lease them."""
    fake_nvml.write(**MACHINE)
    monkeypatch.setenv(FOLDER, str(tmp_path / "leases"))
    monkeypatch.setenv("JUPYTER_DIST_TEST", tmp_path.name)
    return fake_nvml
