"""A job that is cancelled between its start by the dispatcher and its first instruction."""

from __future__ import annotations

import signal

import psutil
import pytest

from jupyter_dist_server.common.processes.process_ref import boot_id
from jupyter_dist_server.jobs import job_control
from jupyter_dist_server.jobs.job_end import recover
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CANCELLED, CONFIGURING, PENDING, RUNNING
from jupyter_dist_server.jobs.store.store import Store

from ..waiting import wait_for
from .queue_driver import Queue

JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"))


@pytest.fixture
def zygote(queue: Queue) -> psutil.Process:
    """Return the process that forks runners, stopped; a job that begins later keeps it."""
    queue.submit("--begin", "now+1hour", "-c", "0", "true")
    wait_for(lambda: queue.processes("dist-zygote"), "the zygote")
    (found,) = queue.processes("dist-zygote")
    found.send_signal(signal.SIGSTOP)
    return found


@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL])
def test_its_code_does_not_run(queue: Queue, zygote: psutil.Process, then: int) -> None:
    job = queue.submit("-c", "0", "--requeue", "sh", "-c", "touch ran")
    queue.until(job, "CONFIGURING")
    queue.run("cancel", job)
    assert queue.show(job)["state"] == "CONFIGURING"
    zygote.send_signal(then)
    found = queue.ended(job)
    assert (found["state"], found["detail"]) == ("CANCELLED", "Cancelled before it started.")
    assert found["started"] is None and not (queue.folder / "ran").exists()
    others = queue.submit("-c", "0", "true")
    assert queue.ended(others)["state"] == "COMPLETED"


def test_a_cancelled_job_neither_runs_nor_waits_again(store: Store) -> None:
    (id,) = store.submit([JOB], "one")
    assert store.move(store.get(id), CONFIGURING, launch="x", boot=boot_id())
    seen = store.get(id)
    job_control.cancel(store, [seen])
    assert not store.move(seen, RUNNING), "the runner has looked before"
    recover(store)
    assert store.get(id).state == CANCELLED


def test_who_was_not_cancelled_waits_again(store: Store) -> None:
    (id,) = store.submit([JOB], "one")
    assert store.move(store.get(id), CONFIGURING, launch="x", boot=boot_id())
    recover(store)
    assert store.get(id).state == PENDING
