"""Fixtures: a library that pynvml takes for NVIDIA's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "fake_nvml" / "fake_nvml.c"
LIBRARY = "libnvidia-ml.so.1"

FakeNvml = Callable[..., None]


@pytest.fixture(scope="session")
def fake_nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the library, and return the folder that it is in."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    command = ["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(folder / LIBRARY)]
    subprocess.run([*command, str(SOURCE)], check=True)
    return folder


@pytest.fixture
def fake_nvml(fake_nvml_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Return a function that sets what the library tells to processes started from now on."""
    state = tmp_path / "nvml-state"
    monkeypatch.setenv("LD_LIBRARY_PATH", str(fake_nvml_folder))
    monkeypatch.setenv("FAKE_NVML_STATE", str(state))

    def tell(**values: int | str) -> None:
        state.write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    return tell
