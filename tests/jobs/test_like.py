"""Asking for the same as a job did, and changing what it was asked for with."""

from __future__ import annotations

import json
from typing import Any

from ..waiting import wait_for
from .queue_driver import Queue

STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.05; done"


def like(queue: Queue, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(queue.run("submit", "--json", "-H", *args))
    return found


def test_the_same_as_a_job(queue: Queue) -> None:
    (queue.folder / "there").mkdir()
    first = queue.submit("-H", "-D", "there", "-J", "a", "-t", "5", "--grace", "2", "echo", "hello")
    (again,) = like(queue, "--like", first)
    assert again["spec"]["argv"] == ["echo", "hello"]
    assert again["spec"]["cwd"] == str(queue.folder / "there")
    assert (again["name"], again["limit"], again["spec"]["grace"]) == ("a", 300.0, 2.0)
    (other,) = like(queue, "--like", again["label"], "-t", "7", "-J", "b", "echo", "bye")
    assert (other["name"], other["limit"]) == ("b", 420.0)
    assert other["spec"]["argv"] == ["echo", "bye"]


def test_the_same_as_a_sweep_or_one_task_of_it(queue: Queue) -> None:
    (queue.folder / "p.csv").write_text('lr,name\n0.1,"a,b"\n0.2,c\n')
    first = queue.submit("-H", "--param-file", "p.csv", "echo", "{lr}", "{name}")
    (queue.folder / "elsewhere").mkdir()
    assert [job["params"] for job in like(queue, "-D", "elsewhere", "--like", first)] == [
        {"lr": "0.1", "name": "a,b"},
        {"lr": "0.2", "name": "c"},
    ]
    (task,) = like(queue, "--like", f"{first}_0")
    assert task["spec"]["argv"] == ["echo", "0.1", "a,b"]
    numbers = queue.submit("-H", "-a", "3-5", "true")
    assert [job["task"] for job in like(queue, "--like", numbers)] == [3, 4, 5]
    assert [job["task"] for job in like(queue, "--like", f"{numbers}_4")] == [4]


def test_what_there_is_no_same_of(queue: Queue) -> None:
    assert "There is no job 7." in queue.run("submit", "--like", "7", code=2)
    queue.submit("-H", "-J", "a", "true")
    queue.submit("-H", "-J", "a", "-t", "5", "true")
    said = queue.run("submit", "--like", "a", code=2)
    assert "names several jobs that were not submitted together" in said


def test_another_comment_and_grace(queue: Queue) -> None:
    tasks = queue.submit("-H", "-a", "0-2", "true")
    queue.run("update", "--comment", "mine", "--grace", "5", f"{tasks}_1")
    found = {job["task"]: job["spec"] for job in json.loads(queue.run("show", "--json", tasks))}
    assert (found[1]["comment"], found[1]["grace"]) == ("mine", 5.0)
    assert "comment" not in found[0] and "grace" not in found[2]
    assert "mine" in queue.run("show", f"{tasks}_1")
    assert "Use 0 to 86400 seconds." in queue.run("update", "--grace", "-1", tasks, code=2)
    assert "Use 0 to 86400 seconds." in queue.run("submit", "--grace", "100000", "true", code=2)


def test_a_running_job_gets_another_grace_time(queue: Queue) -> None:
    job = queue.submit("-c", "0", "--grace", "3600", "sh", "-c", STUBBORN)
    wait_for(lambda: queue.until(job, "RUNNING") and queue.output(job), "its start")
    queue.run("update", "--grace", "1", job)
    queue.run("cancel", job)
    assert queue.ended(job)["state"] == "CANCELLED", "long before an hour is over"
