"""Steps of the clock and sleep: limits are counted by a clock that nobody sets."""

from __future__ import annotations

import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.gpus.readers.gpu_reader import GpuReader
from jupyter_dist_server.jobs.dispatcher import Dispatcher
from jupyter_dist_server.jobs.schedule.order import in_order
from jupyter_dist_server.jobs.schedule.wants import Want
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..waiting import wait_for
from .queue_driver import Queue

STEP = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Adds the seconds in the file that CLOCK_STEP names to the time of day. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, now);
    FILE *file;
    if (clock == CLOCK_REALTIME && (file = fopen(getenv("CLOCK_STEP"), "r"))) {
        long step = 0;
        if (fscanf(file, "%ld", &step) == 1)
            now->tv_sec += step;
        fclose(file);
    }
    return code;
}
"""
UNTIL_GO = ["sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]


@pytest.fixture
def step(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Path:
    source, library = queue.folder / "step.c", queue.folder / "step.so"
    source.write_text(STEP)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    path = queue.folder / "step"
    path.write_text("0")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_STEP", str(path))
    return path


def test_a_limit_neither_ends_early_nor_late_by_a_step_of_the_clock(
    queue: Queue, step: Path
) -> None:
    """A step forward is also what a suspended machine sees: that time does not count."""
    long = queue.submit("-c", "0", "-t", "60", *UNTIL_GO)
    queue.until(long, "RUNNING")
    step.write_text("86400")
    short = queue.submit("-c", "0", "-t", "0:15", *UNTIL_GO)
    queue.until(short, "RUNNING")
    step.write_text("-86400")
    wait_for(lambda: queue.show(short)["state"] == "TIMEOUT", "its limit, as seconds passed")
    assert queue.show(long)["state"] == "RUNNING"
    (queue.folder / "go").touch()
    assert queue.ended(long)["state"] == "COMPLETED"


def test_jobs_of_the_same_moment_start_in_the_order_of_their_ids() -> None:
    wants = [Want(str(id), "me", 1000.0, gpus=1) for id in (3, 4, 5)]
    assert [one.id for one in in_order([], wants, 900.0)] == ["3", "4", "5"]


def test_times_that_are_months_away(queue: Queue) -> None:
    """A system call that waits knows 24 days at most."""
    later = queue.submit("-c", "0", "--begin", "now+60days", "true")
    wait_for(lambda: queue.show(later)["reason"] == "BeginTime", "the dispatcher's work")
    (dispatcher,) = queue.processes("dist-dispatcher")
    # It outlasts the only look at a file that is none: then nothing but the limit is due.
    long = queue.submit("-c", "0", "-t", "60-0", "-o", "/dev/null", "sleep", "2")
    assert queue.ended(long)["state"] == "COMPLETED"
    assert queue.processes("dist-dispatcher") == [dispatcher]


def test_the_clock_is_looked_at_each_minute_while_a_job_waits_for_it(queue: Queue) -> None:
    """Waits do not count the time for which the machine is suspended."""
    no_zygote: Any = None
    later = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"), begin=time.time() + 3600)
    with closing(Store(store_folder())) as store:
        store.submit([later], "later")
        dispatcher = Dispatcher(store, no_zygote, GpuReader())
        try:
            wait = dispatcher.once()
        finally:
            dispatcher._board.close()
            dispatcher._reader.close()
    assert wait is not None and wait <= 60
