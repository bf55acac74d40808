"""Jobs that run again and again: ``--every``."""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.jobs.job_end import write_end
from jupyter_dist_server.jobs.series import next_run
from jupyter_dist_server.jobs.store.states import CONFIGURING, FAILED, RUNNING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..waiting import wait_for
from .queue_driver import UNTIL_GO, Queue


def history(queue: Queue) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(queue.run("history", "--json"))
    return found


def test_a_job_runs_again_and_again(queue: Queue) -> None:
    command = ["sh", "-c", 'echo "run $HF_TOKEN"; exit 3']
    first = queue.submit("-c", "0", "-J", "b", "--every", "1s", "--env", "HF_TOKEN=x", *command)
    wait_for(lambda: len(history(queue)) >= 3, "three runs")
    queue.run("cancel", first)
    runs = history(queue)
    *ended, last = runs
    assert last["state"] == "CANCELLED"
    assert {(job["state"], job["name"], job["attempt"]) for job in ended} == {("FAILED", "b", 1)}
    assert [job["label"] for job in runs] == [str(n + 1) for n in range(len(runs))]
    for job, before in zip(runs[1:], runs, strict=False):
        later = job["begin"] - (before["begin"] or before["submitted"])
        assert later == pytest.approx(max(1, round(later)), abs=1e-3)
        assert job["begin"] >= before["ended"], "times of a run are left out"
    assert all(queue.output(job["label"]) == "run x\n" for job in ended)
    assert queue.run("queue", "--json").strip() == "[]", "the series has ended"
    assert len([*queue.folder.glob("jupyter-dist/*/secrets/*")]) == 1


def test_the_next_run_waits_for_its_time(queue: Queue) -> None:
    first = queue.submit("-c", "0", "--every", "1-00:00:00", "true")
    queue.ended(first)
    wait_for(lambda: queue.show("@")["reason"] == "BeginTime", "the next run to wait")
    second = queue.show("@")
    assert second["begin"] == queue.show(first)["submitted"] + 86400
    assert second["detail"].startswith("--every: it starts after ")
    assert "Every: 1-00:00:00" in queue.run("show", second["label"])
    queue.run("cancel", second["label"])
    queue.run("requeue", first)
    queue.ended(first)
    assert queue.show("@")["label"] == second["label"], "it has had its next run"


def test_a_running_job_of_a_series_is_cancelled(queue: Queue) -> None:
    first = queue.submit("-c", "0", "--every", "1d", *UNTIL_GO)
    queue.until(first, "RUNNING")
    queue.run("cancel", first)
    assert queue.ended(first)["state"] == "CANCELLED"
    assert queue.show("@")["label"] == first


def test_a_machine_that_was_off_runs_it_once(queue: Queue) -> None:
    first = queue.submit("-c", "0", "--every", "6h", "true")
    queue.ended(first)
    wait_for(lambda: queue.show("@")["label"] != first, "the next run")
    with closing(Store(store_folder())) as store:  # as if it had been off for three days
        store.change([2], begin=time.time() - 3 * 86400, submitted=1.0)
    queue.ended("2")
    wait_for(lambda: queue.show("@")["label"] == "3", "the run after it")
    then = queue.show("3")
    assert 0 < then["begin"] - time.time() <= 6 * 3600 and then["state"] == "PENDING"


def test_a_series_goes_on_after_a_failure_of_the_runner(queue: Queue) -> None:
    first = int(queue.submit("-H", "--every", "1d", "true"))
    with closing(Store(store_folder())) as store:
        store.change([first], held=False)
        store.move(store.get(first), CONFIGURING, launch="x")
        store.move(store.get(first), RUNNING, started=time.time())
        end = {"state": FAILED, "ended": time.time(), "exit_code": 1}
        write_end(store, store.get(first), end)
    assert queue.show("@")["state"] == "PENDING" and not queue.show("@")["held"]


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_times_of_runs() -> None:
    noon = at("2026-03-02T12:00")
    assert next_run("0 3 * * *", 0, noon) == at("2026-03-03T03:00")
    assert next_run("*/10 * * * MON", 0, noon) == at("2026-03-02T12:10")
    assert next_run("6h", noon, noon + 60) == noon + 6 * 3600
    assert next_run("6h", noon, noon + 13 * 3600) == noon + 18 * 3600
    assert next_run("1-0", noon, noon + 86400) == noon + 2 * 86400
    assert next_run("30m", noon, noon - 7200) == noon + 1800, "the clock was set back"


@pytest.mark.parametrize("every", ["x", "0 3 * *", "0 25 * * *", "0", "UNLIMITED", "0 0 30 2 *"])
def test_what_is_no_time(queue: Queue, every: str) -> None:
    with pytest.raises(DistError):
        next_run(every, 0, 1)
    said = queue.run("submit", "--every", every, "true", code=2)
    assert "neither a time nor a line of cron" in said


def test_what_cannot_be_a_series(queue: Queue) -> None:
    assert "no array" in queue.run("submit", "--every", "1d", "-a", "0-3", "true", code=2)
    assert "starts one job" in queue.run("run", "--every", "1d", "true", code=2)


def test_a_line_of_cron_in_a_script(queue: Queue) -> None:
    Path("job.sh").write_text('#!/bin/sh\n#JDIST --every "0 3 * * *"\ntrue\n')
    job = queue.show(queue.submit("-c", "0", "job.sh"))
    then = datetime.fromtimestamp(job["begin"])
    assert (job["state"], then.hour, then.minute) == ("PENDING", 3, 0)
