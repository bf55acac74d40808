"""``--signal`` warns a job before its time limit, as Slurm does: its programs, or its shell."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

TRAIN = """
import os, signal, sys, time
go = "go" + os.environ.get("RANK", "")  # or one rank could end before the other is warned
if "deaf" not in sys.argv:
    signal.signal(signal.SIGUSR1, lambda number, frame: open(go, "w").close())
print("up")
while not os.path.exists(go):
    time.sleep(0.02)
print("saved")
"""
IN_FOREGROUND = """#!/bin/bash
#SBATCH --signal=USR1@600 --time=1-0
trap 'echo the shell, too' USR1
(python train.py; echo "ended: $?") | cat
"""
WITH_A_TRAP = """#!/bin/bash
#SBATCH --signal=B:USR1@600 --time=1-0
trap 'touch go' USR1
python train.py deaf &
wait
wait $!
echo "ended: $?"
"""


@pytest.fixture
def path(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    (queue.folder / "train.py").write_text(TRAIN)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def ended(queue: Queue, job: str, up: int = 1) -> dict[str, Any]:
    """Bring a job's signal forward, once it can be heard."""
    wait_for(lambda: queue.show(job)["started"] and queue.output(job).count("up") == up, "its work")
    queue.run("update", "--time", "10", job)
    return queue.ended(job)


@pytest.mark.parametrize("script", [IN_FOREGROUND, WITH_A_TRAP])
def test_scripts_for_slurm_are_warned(queue: Queue, path: None, script: str) -> None:
    (queue.folder / "job.sh").write_text(script)
    job = queue.submit("job.sh")
    assert ended(queue, job)["state"] == "COMPLETED", queue.output(job)
    assert queue.output(job) == "up\nsaved\nended: 0\n"


@pytest.mark.parametrize("where", ["", "B:", "R:", "RB:"])
def test_a_program_without_a_script_is_warned(queue: Queue, path: None, where: str) -> None:
    job = queue.submit("-t", "1-0", "--signal", f"{where}USR1@600", "python", "train.py")
    assert ended(queue, job)["state"] == "COMPLETED"


def test_ranks_are_warned_and_torchrun_goes_on(queue: Queue, path: None, fake_nvml: State) -> None:
    fake_nvml.write(gpus=2)
    job = queue.submit("-G", "2", "-t", "1-0", "--signal=USR1@600", "--torchrun", "train.py")
    assert ended(queue, job, up=2)["state"] == "COMPLETED", queue.output(job)
    assert queue.output(job).count("saved") == 2


@pytest.mark.parametrize("text", ["X:USR1@60", "B:USR1@x", "B:"])
def test_what_is_no_signal(queue: Queue, text: str) -> None:
    assert "is not a signal." in queue.run("submit", "--signal", text, "true", code=2)
