"""What comes at the same moment as something else: the order is made, and not waited for."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.file_changes import Wake
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.schedule.overview import overview
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CANCELLED, CONFIGURING, PENDING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..fake_nvml.build import State
from ..waiting import PATIENCE, wait_for
from .queue_driver import Queue

CODE = "echo up; while [ ! -e go ]; do sleep 0.05; done"


def runner_of(queue: Queue, job: str) -> psutil.Process:
    """Return the runner of a job whose code runs."""
    wait_for(lambda: queue.show(job)["state"] == "RUNNING" and queue.output(job), "its output")
    (runner,) = queue.processes("dist-runner")
    return runner


def test_an_exit_that_came_before_a_cancel_counts(queue: Queue) -> None:
    job = queue.submit("-c", "0", "sh", "-c", CODE)
    runner = runner_of(queue, job)
    (code,) = runner.children()
    runner.send_signal(signal.SIGSTOP)
    wait_for(lambda: runner.status() == psutil.STATUS_STOPPED, "its stop")
    (queue.folder / "go").touch()
    wait_for(lambda: code.status() == psutil.STATUS_ZOMBIE, "the exit, which nobody reaps yet")
    queue.run("cancel", job)
    assert queue.show(job)["cancel_at"] and queue.show(job)["state"] == "RUNNING"
    runner.send_signal(signal.SIGCONT)
    found = queue.ended(job)
    assert (found["state"], found["exit_code"]) == ("COMPLETED", 0)
    assert f"Job {job} had ended: COMPLETED." in queue.run("cancel", job)


def test_the_gpus_of_a_killed_runner_are_free_as_soon_as_it_is_gone(
    queue: Queue, fake_nvml: State
) -> None:
    fake_nvml.write(gpus=1)
    job = queue.submit("-c", "0", "-G", "1", "sh", "-c", f"{CODE}; setsid sleep 1000")
    runner = runner_of(queue, job)
    runner.kill()
    runner.wait(PATIENCE)
    who = Leaseholder(pool="p-1", pid=os.getpid(), since=0.0)
    Lease.take(["GPU-fake-0"], who).close()
    assert queue.show(job)["state"] == "NODE_FAIL", "the next command says so"


def test_who_waits_is_woken_when_the_dispatcher_is_killed(queue: Queue) -> None:
    job = queue.submit("--begin", "now+1hour", "-c", "0", "true")
    wait_for(lambda: queue.show(job)["reason"] == "BeginTime", "the dispatcher's work")
    (dispatcher,) = queue.processes("dist-dispatcher")
    with closing(Wake([store_folder() / "running"])) as wake:
        assert wake.descriptor is not None
        assert not select.select([wake.descriptor], [], [], 0)[0]
        dispatcher.kill()
        assert select.select([wake.descriptor], [], [], PATIENCE)[0]


JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"), cpus=0)


def after_first_read(
    monkeypatch: pytest.MonkeyPatch, table: str, change: Callable[[Store], Any]
) -> None:
    """Have another process change the queue as soon as its jobs are read for the first time."""
    read, changes = Store.read, [change]

    def read_and_change(store: Store, query: str, *values: Any) -> Any:
        rows = read(store, query, *values)
        if changes and f"FROM {table}" in query:
            change = changes.pop()
            with closing(Store(store.folder)) as other:
                change(other)
        return rows

    monkeypatch.setattr(Store, "read", read_and_change)


def test_a_job_that_ends_while_dependencies_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit([JOB], "first")
    store.submit([JOB], "second", dependencies=[(1, "afterok")])
    after_first_read(monkeypatch, "dependencies", lambda other: other.change([2], state=CANCELLED))
    ((first, kind),) = store.dependencies()[2]
    assert (first.id, kind) == (1, "afterok")
    assert store.dependencies() == {}


def test_a_job_that_starts_while_the_queue_is_read_is_shown_once(
    leases: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.submit([JOB], "first")
    waits = store.get(1)
    after_first_read(monkeypatch, "jobs", lambda other: other.move(waits, CONFIGURING))
    assert [(row.id, row.state) for row in overview(store)] == [("1", PENDING)]
    assert [(row.id, row.state) for row in overview(store)] == [("1", CONFIGURING)]
