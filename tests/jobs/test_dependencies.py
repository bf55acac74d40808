"""Jobs that wait for other jobs: for all of them, for one, for a time, or for what cannot be."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.gpus.readers.gpu_reader import GpuReader
from jupyter_dist_server.jobs.dispatcher import Dispatcher
from jupyter_dist_server.jobs.schedule.may_start import Obstacle, obstacles
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CANCELLED, COMPLETED, FAILED, PENDING, RUNNING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder
from jupyter_dist_server.jobs.submit.submission import read_dependencies

from ..waiting import wait_for
from .queue_driver import Queue

SPEC = Spec(argv=["true"], cwd="/")


def other(id: int, state: str, started: float | None = None, ended: float | None = None) -> Job:
    return Job(id=id, params={}, name="a", spec=SPEC, state=state, started=started, ended=ended)


def found(*upon: tuple[Job, str], now: float = 1000.0) -> Obstacle | None:
    waits = Job(id=99, params={}, name="b", spec=SPEC)
    return obstacles([waits], [], {99: upon}, now).get(99)


GOOD, BAD, WAITS = other(1, COMPLETED, 1, 2), other(2, FAILED, 1, 2), other(3, PENDING)


def reason(*upon: tuple[Job, str]) -> str | None:
    obstacle = found(*upon)
    return obstacle.reason if obstacle else None


def test_all_are_required_or_one_is_enough() -> None:
    assert reason((GOOD, "afterok"), (WAITS, "afterok")) == "Dependency"
    assert reason((WAITS, "afterok"), (BAD, "afterok")) == "DependencyNeverSatisfied"
    assert reason((GOOD, "?afterok"), (BAD, "?afterok"), (WAITS, "?afterok")) is None
    assert reason((BAD, "?afterok"), (WAITS, "?afterok")) == "Dependency"
    assert reason((BAD, "?afterok"), (GOOD, "?afternotok")) == "DependencyNeverSatisfied"


def test_some_minutes_after_a_start_or_an_end_without_one() -> None:
    running = other(7, RUNNING, started=900.0)
    told = found((running, "after+5"))
    assert told and told.until == 1200.0 and told.detail.startswith("after:7+5: until ")
    assert found((running, "after+5"), now=1200.0) is None
    assert found((other(7, PENDING), "after+5"), now=1e9)
    cancelled = other(7, CANCELLED, ended=990.0)
    assert (told := found((cancelled, "after+1"))) and told.until == 1050.0
    assert found((running, "after")) is None


def test_one_of_several_is_enough(queue: Queue) -> None:
    held = queue.submit("-H", "true")
    bad, good = queue.submit("-c", "0", "false"), queue.submit("-c", "0", "true")
    queue.ended(bad)
    any_of = queue.submit("-c", "0", "-d", f"afterok:{held}?afterok:{bad}:{good}", "true")
    assert queue.ended(any_of)["state"] == COMPLETED
    Path("train.sh").write_text(f"#!/bin/bash\n# GFLOW --depends-on-any={held},{good}\ntrue\n")
    assert queue.run("submit", "-c", "0", "train.sh") == "Submitted job 5.\n"
    assert queue.ended("5")["state"] == COMPLETED


@pytest.mark.parametrize("option", ["--kill-on-invalid-dep=yes", "#SBATCH"])
def test_what_cannot_be_any_more_is_cancelled_if_asked(queue: Queue, option: str) -> None:
    bad = queue.submit("-c", "0", "false")
    waits = queue.submit("-c", "0", "-d", f"afterok:{bad}", "true")
    if option == "#SBATCH":
        Path("next.sh").write_text("#!/bin/bash\n#SBATCH --kill-on-invalid-dep=yes\ntrue\n")
        cancelled = queue.submit("-c", "0", "-d", f"afterok:{bad}", "next.sh")
    else:
        cancelled = queue.submit("-c", "0", "-d", f"afterok:{bad}", option, "true")
    after = queue.submit("-c", "0", "-d", f"afternotok:{cancelled}", "true")
    assert queue.ended(after)["state"] == COMPLETED
    job = queue.show(cancelled)
    assert (job["state"], job["reason"]) == (CANCELLED, "DependencyNeverSatisfied")
    assert job["detail"].endswith(f"job {bad} is FAILED. Cancelled before it started.")
    wait_for(lambda: queue.show(waits)["reason"] == "DependencyNeverSatisfied", "the reason")
    assert queue.show(waits)["state"] == PENDING


def test_a_requeue_takes_those_along_that_were_cancelled(queue: Queue) -> None:
    options = ["-c", "0", "--kill-on-invalid-dep=yes"]
    first = queue.submit("-c", "0", "sh", "-c", "test -e there")
    second = queue.submit(*options, "-d", f"afterok:{first}", "true")
    third = queue.submit(*options, "-a", "0-1", "-d", f"afterok:{second}", "true")
    by_hand = queue.submit("-H", *options, "-d", f"afterok:{first}", "true")
    queue.run("cancel", by_hand)
    other = queue.submit(*options, "-d", f"afternotok:{first}", "false")
    assert queue.ended(f"{third}_1")["reason"] == "DependencyNeverSatisfied"
    queue.ended(other)
    Path("there").touch()
    queue.run("requeue", "--cascade", first)
    for job in (first, second, f"{third}_0", f"{third}_1"):
        assert queue.ended(job)["state"] == COMPLETED
    assert queue.show(by_hand)["state"] == CANCELLED
    assert queue.show(other)["attempt"] == 1, "it was not cancelled"


def test_an_array_that_cannot_be_any_more_is_cancelled_at_once(queue: Queue) -> None:
    no_zygote: Any = None
    spec = Spec(argv=["true"], cwd="/", kill_on_invalid_dep=True)
    tasks = [Job(params={}, name="a", spec=spec, task=task) for task in range(1000)]
    with closing(Store(store_folder())) as store:
        store.submit([Job(params={}, name="b", spec=SPEC)], "one")
        store.change([1], state=CANCELLED, ended=1.0)
        ids = store.submit(tasks, "two", dependencies=[(1, "afterok")], is_array=True)
        dispatcher = Dispatcher(store, no_zygote, GpuReader())
        statements: list[str] = []
        store._db.set_trace_callback(statements.append)
        try:
            while store.pending():
                dispatcher.once()
        finally:
            dispatcher._board.close()
            dispatcher._reader.close()
        assert statements.count("COMMIT") <= 2, "those looked at first, and all others"
        told = "afterok:1: job 1 is CANCELLED. Cancelled before it started."
        for job in map(store.get, ids):
            assert (job.state, job.reason) == (CANCELLED, "DependencyNeverSatisfied")
            assert job.detail == told and job.ended


def test_a_question_mark_in_a_pattern_of_names(queue: Queue) -> None:
    for name in ("run1", "run2", "other"):
        queue.submit("-H", "-J", name, "true")
    with closing(Store(store_folder())) as store:
        every = [(1, "afterok"), (2, "afterok")]
        assert read_dependencies("afterok:run?", store) == (every, False)
        assert read_dependencies("singleton,afterok:run?", store) == (every, True)
        any_of = [(1, "?afterok"), (2, "?afterok"), (3, "?after+5")]
        assert read_dependencies("afterok:run??after:other+5", store) == (any_of, False)


def test_a_delay_is_waited_for(queue: Queue) -> None:
    first = queue.submit("-c", "0", "true")
    waits = queue.submit("-c", "0", "-d", f"after:{first}+10", "true")
    wait_for(lambda: f"after:{first}+10: until " in queue.show(waits)["detail"], "the reason")
    assert queue.show(waits)["reason"] == "Dependency"
    queue.run("cancel", waits)


@pytest.mark.parametrize("text", ["afterok:1?singleton", "afterok:1+5", "afterok:1?,after:1"])
def test_what_is_no_dependency_is_refused(queue: Queue, text: str) -> None:
    queue.submit("-H", "true")
    queue.run("submit", "-d", text, "true", code=2)
