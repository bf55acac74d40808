"""The machine is shut down: all processes of the user get SIGTERM, and nothing new is started."""

from __future__ import annotations

import os
import signal
from contextlib import closing, suppress
from functools import partial

import psutil
import pytest

from jupyter_dist_server.jobs.store.states import COMPLETED, COMPLETING, NODE_FAIL, PENDING, RUNNING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..waiting import PATIENCE, wait_for
from .queue_driver import Queue
from .test_recovery import alive

WORK = "echo up; until [ -e go ]; do sleep 0.05; done"
"""Ends at SIGTERM."""
SAVES = "trap 'until [ -e save ]; do sleep 0.05; done; echo saved; exit 0' TERM; " + WORK
"""Ends once it has saved, which takes longer than its runner needs to hear of the end."""


@pytest.mark.parametrize("first", ["those that started first", "what they started"])
def test_a_shutdown_ends_jobs_and_starts_none(queue: Queue, first: str) -> None:
    lost = queue.submit("-c", "0", "sh", "-c", WORK)
    again = queue.submit("-c", "0", "--requeue", "sh", "-c", WORK)
    saves = queue.submit("-c", "0", "--requeue", "bash", "-c", SAVES)
    within = queue.submit("-c", "0", "--requeue", "bash", "-c", f'bash -c "{SAVES}"; true')
    waits = queue.submit("-c", "0", "-d", f"afterany:{lost}", "true")
    for job in (lost, again, saves, within):
        queue.until(job, RUNNING)
        wait_for(partial(queue.output, job), "its output")
    wait_for(lambda: queue.show(waits)["reason"] == "Dependency", "a dispatcher that waits")
    processes = sorted(alive(queue), key=lambda process: process.create_time())
    (dispatcher,) = queue.processes("dist-dispatcher")
    dispatcher.suspend()  # or it would have time to start a job, if this process has to wait
    for process in processes if first == "those that started first" else processes[::-1]:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGTERM)  # at once: psutil looks at the process before
    with suppress(psutil.NoSuchProcess):
        dispatcher.resume()
    with closing(Store(store_folder())) as store:
        saving = lambda: {store.get(int(job)).state for job in (saves, within)}  # noqa: E731
        wait_for(lambda: saving() == {COMPLETING}, "their grace time")
    (queue.folder / "save").touch()
    psutil.wait_procs(processes, PATIENCE)
    wait_for(lambda: not alive(queue), "the end of all")
    with closing(Store(store_folder())) as store:  # no command, which would start a dispatcher
        found = {str(job.id): (job.state, job.attempt) for job in store.select()}
    assert found[lost] == (NODE_FAIL, 1)
    assert {found[job] for job in (again, saves, within)} == {(PENDING, 2)}
    assert found[waits] == (PENDING, 1)
    for job in (saves, within):
        assert "saved\n" in queue.output(job), "it had its grace time"
    (queue.folder / "go").touch()
    for job in (again, saves, within, waits):
        assert queue.ended(job)["state"] == COMPLETED
