"""Failures of tasks, and what becomes of the rest of their array."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from jupyter_dist_server.jobs.job_end import write_end
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CONFIGURING, FAILED, RUNNING
from jupyter_dist_server.jobs.store.store import Store

from ..waiting import wait_for
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


def codes(*listed: int) -> list[str]:
    """Return a command of which each task has an exit code of its own."""
    return ["sh", "-c", "shift $JDIST_ARRAY_TASK_ID; exit $1", "sh", *map(str, listed)]


def test_quick_failures_in_a_row_hold_the_rest(queue: Queue) -> None:
    array = queue.submit("-c", "0", "-a", "0-9%1", *codes(0, 7, 7, 7, 1, 1, 1, 0, 0, 0))
    queue.until(f"{array}_9", "PENDING")
    wait_for(lambda: queue.show(f"{array}_9")["held"], "the rest to be held")
    found = tasks(queue, array)
    assert [job["exit_code"] for job in found] == [0, 7, 7, 7] + [None] * 6
    assert {job["reason"] for job in found[4:]} == {"JobHeldFailures"}
    assert found[4]["detail"] == (
        f"3 tasks in a row failed within 60 s, the last one was {array}_3: It ended with exit "
        f"code 7. See “jdist logs {array}_3”; “jdist release {array}” lets the rest start."
    )
    assert f"{array}_[4-9]" in queue.run("queue"), "one line"
    assert "JobHeldFailures" in queue.run("queue")
    free = queue.submit("-c", "0", "true")  # the dispatcher looks at all jobs meanwhile
    queue.ended(free)
    assert queue.show(f"{array}_4")["reason"] == "JobHeldFailures"
    queue.run("release", f"{array}")
    wait_for(lambda: queue.show(f"{array}_9")["held"], "the rest to be held again")
    found = tasks(queue, array)
    assert [job["exit_code"] for job in found[4:]] == [1, 1, 1, None, None, None], "a new count"
    queue.run("release", f"{array}_7-9")
    queue.run("wait", array, code=1)
    assert [job["exit_code"] for job in tasks(queue, array)[7:]] == [0, 0, 0]


def test_a_success_between_failures(queue: Queue) -> None:
    listed = 1, 1, 0, 1, 1, 0, 1, 1
    array = queue.submit("-c", "0", "-a", "0-7%1", *codes(*listed))
    queue.run("wait", array, code=1)
    assert [job["exit_code"] for job in tasks(queue, array)] == [*listed]


def test_a_folder_that_is_gone(queue: Queue) -> None:
    """No task has started: nobody wants this a thousand times."""
    folder = queue.folder / "there"
    folder.mkdir()
    array = queue.submit("-H", "-D", str(folder), "-c", "0", "-a", "0-5%1", "true")
    folder.rmdir()
    queue.run("release", array)
    wait_for(lambda: queue.show(f"{array}_5")["reason"] == "JobHeldFailures", "the rest to be held")
    assert "The folder does not exist" in queue.show(f"{array}_5")["detail"]


def test_slow_failures_hold_nothing(store: Store) -> None:
    spec = Spec(argv=["false"], cwd="/")
    jobs = [Job(params={}, name="a", spec=spec, task=task) for task in range(8)]
    ids = store.submit(jobs, "key", is_array=True)

    def fail(id: int, seconds: float) -> bool:
        store.move(store.get(id), CONFIGURING, launch="x")
        store.move(store.get(id), RUNNING, started=time.time() - seconds)
        end = {"state": FAILED, "ended": time.time(), "exit_code": 1, "detail": "Why."}
        write_end(store, store.get(id), end)
        return store.get(ids[-1]).held

    assert not any(fail(id, 61) for id in ids[:3])
    assert [fail(id, 5) for id in ids[3:6]] == [False, False, True]
