"""The driver's checkpoint of a process, with a driver that is pretended; never run on a GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ..environment import environment
from ..fake_cuda.build import FakeCuda

PROGRAM = """
import json, sys
from jupyter_dist_server.rank.park.checkpoint import Checkpoint, DriverError
try:
    driver = Checkpoint()
    said = [(reply.failure, reply.is_lost) for reply in map(driver.take, sys.argv[1:])]
    print(json.dumps([said, driver.state().name]))
except DriverError as error:
    print(json.dumps(str(error)))
"""
ALL = ("lock", "checkpoint", "restore", "unlock")
FINE = ["", False]


def take(home: Path, driver: FakeCuda | None, *steps: str) -> object:
    variables = {"RANK": "3"} | (driver.environment if driver else {})
    command = [sys.executable, "-c", PROGRAM, *steps]
    env = environment(home, **variables)
    return json.loads(subprocess.run(command, env=env, check=True, capture_output=True).stdout)


@pytest.fixture
def driver(tmp_path: Path, fake_nvml_folder: Path) -> FakeCuda:
    return FakeCuda(tmp_path)


def test_a_process_is_parked_and_comes_back(driver: FakeCuda, tmp_path: Path) -> None:
    assert take(tmp_path, driver, *ALL) == [[FINE] * 4, "RUNNING"]
    assert driver.calls() == ["3 lock 0 1", "3 checkpoint 0 2", "3 restore 0 1", "3 unlock 0 0"]


def test_a_step_that_is_done_is_not_done_again(driver: FakeCuda, tmp_path: Path) -> None:
    undone = take(tmp_path, driver, "restore", "unlock", "lock", "lock", "restore", "unlock")
    assert undone == [[FINE] * 6, "RUNNING"]
    assert driver.calls() == ["3 lock 0 1", "3 unlock 0 0"]
    again = take(tmp_path, driver, "lock", "checkpoint", "checkpoint", "lock")
    assert again == [[FINE] * 4, "CHECKPOINTED"]


def test_a_step_out_of_order_is_refused(driver: FakeCuda, tmp_path: Path) -> None:
    """It must not seem to have its memory in the host's, or on its GPU."""
    early = ["The driver cannot checkpoint a process that is RUNNING.", False]
    assert take(tmp_path, driver, "checkpoint") == [[early], "RUNNING"]
    early = ["The driver cannot unlock a process that is CHECKPOINTED.", False]
    assert take(tmp_path, driver, "lock", "checkpoint", "unlock") == [
        [FINE, FINE, early],
        "CHECKPOINTED",
    ]


def test_a_kernel_that_never_ends(driver: FakeCuda, tmp_path: Path) -> None:
    driver.script("* lock fail 600")
    busy = ["Its GPU still runs what was launched on it.", False]
    assert take(tmp_path, driver, "lock") == [[busy], "RUNNING"]


@pytest.mark.parametrize("place", range(4))
def test_a_failure_is_told_and_the_state_stays(
    driver: FakeCuda, tmp_path: Path, place: int
) -> None:
    driver.script(f"* {ALL[place]} fail 801")
    name = f"cuCheckpointProcess{ALL[place].capitalize()}"
    why = [f"The driver's {name} failed with CUDA_ERROR_NOT_SUPPORTED.", False]
    states = ("RUNNING", "LOCKED", "CHECKPOINTED", "LOCKED")
    expected = [[*[FINE] * place, why], states[place]]
    assert take(tmp_path, driver, *ALL[: place + 1]) == expected


def test_what_is_lost_is_told(driver: FakeCuda, tmp_path: Path) -> None:
    driver.script("3 restore lose 2")
    lost = "The driver's cuCheckpointProcessRestore failed with CUDA_ERROR_OUT_OF_MEMORY."
    later = "The driver has lost what was on its GPU."
    said = take(tmp_path, driver, *ALL)
    assert said == [[FINE, FINE, [lost, True], [later, True]], "FAILED"]


def test_an_error_without_a_name_has_its_number(driver: FakeCuda, tmp_path: Path) -> None:
    driver.script("* lock fail 12345")
    said = take(tmp_path, driver, "lock")
    assert said == [
        [["The driver's cuCheckpointProcessLock failed with error 12345.", False]],
        "RUNNING",
    ]


def test_drivers_that_cannot_park(tmp_path: Path, fake_nvml_folder: Path) -> None:
    old = "The NVIDIA driver cannot park processes: that needs release 570 or newer."
    assert take(tmp_path, FakeCuda(tmp_path, old=True), "lock") == old
    said = take(tmp_path, None, "lock")
    assert str(said).startswith("The NVIDIA driver cannot be loaded: libcuda.so.1: cannot open")
