"""``jdist submit --profile-steps``: the log of a script says why it is slow, and what to do."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from ..fake_nvml.build import State
from .queue_driver import Queue

TRAIN = """
import sys, time, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(sys.argv[1])):
    with record_function("data"):
        time.sleep(0.2 * dist.get_rank())
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
print("trained", flush=True)
"""


def submit(queue: Queue, fake_nvml: State, *steps: str, gpus: int = 2, before: str = "") -> str:
    fake_nvml.write(gpus=2)
    (queue.folder / "train.py").write_text(before + TRAIN)
    path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
    options = ["-c", "0", "-G", str(gpus), "--torchrun", "--env", path, "--profile-steps", "4"]
    return queue.submit(*options, "train.py", *steps)


def check(queue: Queue, job: str) -> None:
    assert queue.ended(job)["state"] == "COMPLETED", queue.output(job)
    text = queue.output(job)
    assert text.count("trained") == 2
    assert " of a step is waiting: rank 1 arrives " in text, text
    step = r"Next: `data` takes [\d.]+ m?s longer on rank 1: give all ranks the same"
    assert re.search(step, text), text
    assert "Times are per step, the average of 4 optimizer steps after the first one" in text
    file = queue.folder / f"profile-job-{job}.json.gz"
    assert f"Trace of all ranks: {file}" in text
    compared = queue.run("profile", "compare", str(file), str(file))
    assert "as before" in compared


def test_some_steps_of_a_long_job(queue: Queue, fake_nvml: State) -> None:
    check(queue, submit(queue, fake_nvml, "25"))


@pytest.mark.slow
def test_a_job_that_ends_with_the_last_step(queue: Queue, fake_nvml: State) -> None:
    check(queue, submit(queue, fake_nvml, "6"))


def test_a_trace_that_cannot_be_read_ends_no_job(queue: Queue, fake_nvml: State) -> None:
    spoilt = (
        "from torch.profiler import profile\n"
        "profile.export_chrome_trace = lambda self, path: open(path, 'w').write('{')\n"
    )
    job = submit(queue, fake_nvml, "8", gpus=1, before=spoilt)
    assert queue.ended(job)["state"] == "COMPLETED", queue.output(job)
    text = queue.output(job)
    assert "trained" in text and "[jdist: The steps of rank 0 cannot be profiled: " in text, text


def test_jobs_on_more_and_more_gpus_are_compared(queue: Queue, fake_nvml: State) -> None:
    jobs = [submit(queue, fake_nvml, "6", gpus=gpus) for gpus in (1, 2)]
    for job in jobs:
        assert queue.ended(job)["state"] == "COMPLETED", queue.output(job)
    files = [str(queue.folder / f"profile-job-{job}.json.gz") for job in jobs]
    said = queue.run("profile", "scaling", "--weak", *files)
    # A step of one rank takes milliseconds, unless the machine is busy; of two, 0.2 s.
    assert re.match(r"2 ranks do 0\.\d times as much in the same time as 1 rank", said), said


def test_a_wrong_number_is_refused(queue: Queue) -> None:
    assert "must be at least 1" in queue.run("submit", "--profile-steps", "0", "true", code=2)
    refused = queue.run("submit", "--profile-steps", "2", "--no-why", "true", code=2)
    assert "does not work with --no-why" in refused
