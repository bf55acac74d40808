"""How a job is ended: which processes get which signal, and how long they have then."""

from __future__ import annotations

import time

from ..waiting import wait_for
from .queue_driver import Queue
from .test_races import runner_of

SAVES = "trap 'sleep 0.5; echo saved; exit' TERM; echo up; while :; do sleep 0.05; done"
"""Saves when it is asked to end; in a script that just dies then."""


def test_what_a_script_has_started_has_the_grace_time_too(queue: Queue) -> None:
    cancelled = queue.submit("-c", "0", "bash", "-c", f'bash -c "{SAVES}"; true')
    runner_of(queue, cancelled)
    queue.run("cancel", cancelled)
    limited = queue.submit("-c", "0", "-t", "10", "bash", "-c", f'bash -c "{SAVES}"; true')
    wait_for(lambda: queue.show(limited)["started"] and queue.output(limited), "its trap")
    queue.run("update", "-t", "0:01", limited)
    for job, state in ((cancelled, "CANCELLED"), (limited, "TIMEOUT")):
        assert queue.ended(job)["state"] == state
        assert "saved\n" in queue.output(job)


def test_what_a_script_has_started_is_killed_after_the_grace_time(queue: Queue) -> None:
    code = "bash -c \"trap '' TERM; echo up; while :; do sleep 0.05; done\"; true"
    job = queue.submit("-c", "0", "--grace", "1", "bash", "-c", code)
    runner = runner_of(queue, job)
    processes = runner.children(recursive=True)
    queue.run("cancel", job)
    found = queue.ended(job)
    assert found["state"] == "CANCELLED" and found["ended"] - found["cancel_at"] >= 1
    wait_for(lambda: not any(process.is_running() for process in processes), "their end")


def test_a_runner_sleeps_when_the_limit_passes_in_the_grace_time(queue: Queue) -> None:
    code = "trap '' TERM; echo up; sleep 1000"
    job = queue.submit("-c", "0", "-t", "10", "--grace", "1000", "sh", "-c", code)
    runner = runner_of(queue, job)
    queue.run("cancel", job)
    queue.run("update", "-t", "0:03", job)
    ends_by = queue.show(job)["ends_by"]
    wait_for(lambda: time.time() > ends_by + 0.5, "the limit")
    before = runner.num_ctx_switches().voluntary
    wait_for(lambda: time.time() > ends_by + 1.5, "another second")
    assert runner.num_ctx_switches().voluntary - before < 30
    queue.run("cancel", "--now", job)
    assert queue.ended(job)["state"] == "CANCELLED"


def test_a_signal_does_not_reach_the_jobs_that_a_job_has_submitted(queue: Queue) -> None:
    submits = f"until [ -e submit ]; do sleep 0.05; done; {queue.program()} submit -c 0 sleep 1000"
    code = f"trap 'echo got' USR1; echo up; {submits}; until [ -e go ]; do sleep 0.05; done"
    outer = queue.submit("-c", "0", "bash", "-c", code)
    runner = runner_of(queue, outer)
    wait_for(lambda: not queue.processes("dist-dispatcher"), "the end of the dispatcher")
    (queue.folder / "submit").touch()
    wait_for(lambda: "Submitted" in queue.output(outer), "another job")
    inner = str(int(outer) + 1)

    def runners_below() -> list[int]:  # while a process in between ends, it may not be found there
        below = {process.pid for process in runner.children(recursive=True)}
        return [process.pid for process in queue.processes("dist-runner") if process.pid in below]

    # Not asked with `jdist`, which would start a dispatcher that is not below the job's runner.
    wait_for(runners_below, "its runner below the job's")
    theirs = queue.until(inner, "RUNNING")["runner_pid"]
    assert theirs in runners_below()
    queue.run("cancel", "-s", "USR1", outer)
    wait_for(lambda: "got\n" in queue.output(outer), "the signal")
    (queue.folder / "go").touch()
    assert queue.ended(outer)["state"] == "COMPLETED"
    assert (queue.show(inner)["state"], queue.show(inner)["runner_pid"]) == ("RUNNING", theirs)
    queue.run("cancel", inner)
    assert queue.ended(inner)["state"] == "CANCELLED"
