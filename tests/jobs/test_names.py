"""What the name of several jobs means: those that have not ended, or else the newest."""

from __future__ import annotations

import json
from contextlib import closing

from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder
from jupyter_dist_server.jobs.submit.submission import read_dependencies

from .queue_driver import Queue


def labels(text: str) -> list[str]:
    return [job["label"] for job in json.loads(text)]


def test_a_name_that_is_used_again_leaves_old_jobs_alone(queue: Queue) -> None:
    old = queue.submit("-c", "0", "-J", "run", "sh", "-c", "echo old; exit 1")
    assert queue.ended(old)["state"] == "FAILED"
    new = queue.submit("-c", "0", "-J", "run", "echo", "new")
    queue.ended(new)
    assert queue.run("wait", "run") == ""
    assert queue.run_program("logs", "run") == "new\n"
    assert labels(queue.run("show", "--json", "r*")) == [new]
    queue.run("requeue", "run")
    queue.run("wait", "run")
    assert [queue.show(job)["attempt"] for job in (old, new)] == [1, 2]
    last = queue.submit("-H", "-J", "run", "true")
    assert queue.run("hold", "run") == queue.run("cancel", "run") == ""
    assert queue.show(last)["state"] == "CANCELLED"


def test_a_name_of_arrays(queue: Queue) -> None:
    queue.run("submit", "-H", "-a", "0-2", "-J", "run", "true")
    queue.run("cancel", "run")
    queue.run("submit", "-H", "-a", "0-1", "-J", "run", "true")
    queue.run("cancel", "4_0")
    assert labels(queue.run("show", "--json", "run")) == ["4_1"]
    told = queue.run("wait", "--timeout", "0", "--json", "run", code=124)
    assert labels(told) == ["4_0", "4_1"], "its result is that of all tasks"
    with closing(Store(store_folder())) as store:
        assert read_dependencies("afterok:run", store)[0] == [(4, "afterok"), (5, "afterok")]
    told = queue.run("submit", "--json", "-H", "--like", "run", "-J", "other")
    assert labels(told) == ["6_0", "6_1"]
    assert queue.run("cancel", "run") == ""
    assert labels(queue.run("show", "--json", "run")) == ["4_0", "4_1"]
    assert "Job 4_0 has not started" in queue.run("logs", "run", code=2)
