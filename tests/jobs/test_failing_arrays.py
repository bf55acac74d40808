"""Failures of tasks, and what becomes of the rest of their array."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .queue_driver import Queue

TASK = [
    "sh",
    "-c",
    "go=go$JDIST_ARRAY_TASK_ID; while [ ! -e $go ]; do sleep 0.05; done; exit $(cat $go)",
]
"""Ends with the exit code in a file of its own."""


def end_task(queue: Queue, task: str, code: int) -> None:
    queue.until(task, "RUNNING")
    name = queue.folder / f"go{task.partition('_')[2]}"
    name.with_suffix(".new").write_text(f"{code}\n")
    name.with_suffix(".new").rename(name)
    queue.ended(task)


def tasks(queue: Queue, array: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(queue.run("show", "--json", array))
    return found


def test_an_array_stops_after_so_many_failures(queue: Queue) -> None:
    array = queue.submit("-c", "0", "-a", "0-9%3", "--max-fails", "2", *TASK)
    other = queue.submit("-c", "0", "-d", f"afterany:{array}", "true")
    end_task(queue, f"{array}_0", 1)
    end_task(queue, f"{array}_1", 0)
    assert queue.show(f"{array}_9")["state"] == "PENDING", "one has failed"
    end_task(queue, f"{array}_2", 1)
    found = tasks(queue, array)
    assert [job["state"] for job in found[3:5]] == ["RUNNING"] * 2, "they go on"
    for job in found[5:]:
        assert (job["state"], job["reason"]) == ("CANCELLED", "JobArrayMaxFails")
        told = "2 tasks of its array have failed (--max-fails). Cancelled before it started."
        assert job["detail"] == told
    running = [job["label"] for job in found if job["state"] == "RUNNING"]
    for label in running:
        end_task(queue, label, 0)
    assert queue.ended(other)["state"] == "COMPLETED"


def test_tasks_that_are_started_again_have_not_failed(queue: Queue) -> None:
    again = "test $JDIST_ATTEMPT -gt 1 || exit 75"
    options = ["-c", "0", "-a", "0-3%1", "--max-fails", "1", "--requeue-on", "75"]
    array = queue.submit(*options, "sh", "-c", again)
    queue.run("wait", array)
    assert {job["state"] for job in tasks(queue, array)} == {"COMPLETED"}


@pytest.mark.parametrize("options", [["--max-fails", "1"], ["-a", "0-2", "--max-fails", "0"]])
def test_a_number_of_failures_without_meaning(queue: Queue, options: list[str]) -> None:
    assert "--max-fails" in queue.run("submit", *options, "true", code=2)
