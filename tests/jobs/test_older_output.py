"""A file of the output's name that was there before is not taken for the job's output."""

from __future__ import annotations

import pytest

from ..fake_nvml.build import State
from .queue_driver import UNTIL_GO, Queue

OLD = "epoch 1: loss 0.5\n"


NEVER_STARTS = ["--param", "p=no-such", "{p}"]


@pytest.mark.parametrize(("command", "code"), [(["echo", "new"], 0), (NEVER_STARTS, 1)])
def test_run_shows_its_own_output_only(queue: Queue, command: list[str], code: int) -> None:
    (queue.folder / "log.txt").write_text(OLD)
    said = queue.run_program("run", "-o", "log.txt", *command, code=code)
    assert OLD not in said and "was replaced" not in said
    assert ("new\n" in said) == (code == 0)


def test_a_job_that_never_started_has_no_output(queue: Queue) -> None:
    (queue.folder / "log.txt").write_text(OLD)
    job = queue.submit("--hold", "-o", "log.txt", "true")
    queue.run("cancel", job)
    assert queue.run_program("logs", "-f", job) == ""


def test_a_requeued_job_that_waits_has_the_output_of_its_attempts(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=1)
    job = queue.submit("-G", "1", "echo", "up")
    queue.ended(job)
    queue.submit("-G", "1", *UNTIL_GO)
    queue.run("requeue", job)
    assert queue.show(job)["state"] == "PENDING"
    assert queue.run_program("logs", job) == "up\n"


def test_a_requeued_job_that_has_never_run_has_no_output(queue: Queue) -> None:
    folder = queue.folder / "folder"
    folder.mkdir()
    log = ["-o", str(queue.folder / "log.txt")]
    job = queue.submit("--hold", "-c", "0", "-D", "folder", *log, "echo", "new")
    folder.rmdir()
    queue.run("release", job)
    assert queue.ended(job)["reason"] == "JobLaunchFailure"
    (queue.folder / "log.txt").write_text(OLD)
    for _ in range(2):
        queue.run("requeue", job)
        assert queue.ended(job)["attempt"] == 1, "its code has not run"
        said = queue.run("logs", job, code=2)
        assert f"Job {job} has not started: FAILED. {folder}: The folder does not exist." in said
    folder.mkdir()
    queue.run("requeue", job)
    assert queue.ended(job)["state"] == "COMPLETED"
    assert queue.run_program("logs", job) == "new\n"
