"""Whatever is killed or stopped, no acknowledged job is lost, none runs twice for an attempt, and
no GPU is given to two.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from collections import Counter

import psutil
import pytest

from jupyter_dist_server.common.policy import PATH
from jupyter_dist_server.jobs.leases.lease import running
from jupyter_dist_server.jobs.variables import JOB

from ..fake_nvml.build import State
from ..waiting import wait_for
from .queue_driver import Queue

FAULTS = int(os.environ.get("JUPYTER_DIST_CHAOS", "16"))
VICTIMS = ("dist-dispatcher", "dist-zygote", "dist-runner", "dist-sampler")
MOST = 8
"""Jobs that wait or run, about."""
STOPPED = 0.5
"""Seconds for which a process is stopped."""
ENDED = {"COMPLETED", "NODE_FAIL"}


@pytest.mark.parametrize("has_rules", [False, True], ids=["plain", "rules"])
def test_random_kills_and_stops(
    queue: Queue, fake_nvml: State, monkeypatch: pytest.MonkeyPatch, has_rules: bool
) -> None:
    fake_nvml.write(gpus=4 if has_rules else 2)
    monkeypatch.setenv(PATH, str(queue.folder / "policy.toml"))
    if has_rules:
        (queue.folder / "policy.toml").write_text("max_gpus = 2\n")
        queue.run("drain", "3")
    seed = random.randrange(10**6)
    chosen = random.Random(seed)
    print(f"seed {seed}")
    code = f'echo "${JOB} $JDIST_ATTEMPT" >> starts; sleep 0.2; echo $JDIST_JOB_ID >> ended'
    # What a job leaves behind has the file open, too.
    alone = 'exec 9> "$CUDA_VISIBLE_DEVICES"; flock -n 9 || echo $JDIST_JOB_ID >> twice; '
    # Each job with a GPU takes one of as many places as there may be such jobs at once.
    alone += (
        "exec 8> place; flock -n 8 || exec 8> other; flock -n 8 || echo $JDIST_JOB_ID >> many; "
    )
    kinds = [["-c", "0", "--requeue", "sh", "-c", code]]
    kinds.append(["-G", "1", "--requeue", "sh", "-c", alone + code])
    jobs: list[str] = []
    timers: list[threading.Timer] = []
    faults = Counter[str]()
    while faults.total() < FAULTS:
        if len(jobs) < len(_lines(queue, "ended")) + faults.total() + MOST:
            jobs.append(queue.submit(*chosen.choice(kinds)))
        if has_rules and chosen.random() < 0.2:
            _change_rules(queue, chosen)
        victims = [process for name in VICTIMS for process in queue.processes(name)]
        victims += queue.processes("sh")
        if not victims or chosen.random() < 0.3:
            queue.run("queue")
            continue
        victim = chosen.choice(victims)
        with contextlib.suppress(psutil.NoSuchProcess):
            name = victim.name()
            if chosen.random() < 0.3:
                victim.send_signal(signal.SIGSTOP)
                later = signal.SIGCONT if chosen.random() < 0.7 else signal.SIGKILL
                # By a timer, as it may have locked what the next command needs.
                timers.append(threading.Timer(STOPPED, _send, (victim, later)))
                timers[-1].start()
                faults[f"{name} stopped"] += 1
            else:
                victim.kill()
                faults[f"{name} killed"] += 1
    for timer in timers:
        timer.join()
    for rule in _reservations(queue):
        queue.run("reservations", "--end", rule)
    for job in jobs:
        wait_for(lambda job=job: queue.show(job)["ended"], f"the end of job {job}")
    found = {job: queue.show(job) for job in jobs}
    states = Counter(one["state"] for one in found.values())
    assert set(states) <= ENDED | {"FAILED"}, states
    starts = Counter(
        line.split()[0].partition(".")[0] + " " + line.split()[1]
        for line in _lines(queue, "starts")
    )
    assert set(starts.values()) == {1}, starts
    assert not _lines(queue, "twice"), "a GPU was given to two jobs"
    assert not _lines(queue, "many"), "more GPUs were in use than the policy allows"
    for job, one in found.items():
        assert "GPU-fake-3" not in one["gpu_uuids"], "it is drained"
        if one["state"] == "FAILED":  # its own process was killed, not its runner
            assert one["reason"] == "RaisedSignal:9", one
        if one["state"] == "COMPLETED":
            assert job in _lines(queue, "ended")
    for name in VICTIMS:
        wait_for(lambda name=name: not queue.processes(name), f"the end of {name}")
    wait_for(lambda: not _of_jobs(queue), "the end of what jobs have started")
    assert running() == [], "nobody holds a lease"
    print(f"{dict(faults)}, {len(jobs)} jobs: {dict(states)}")


def _change_rules(queue: Queue, chosen: random.Random) -> None:
    """Reserve a GPU, for later or for now, or end that; no job has a time limit."""
    if found := _reservations(queue):
        queue.run("reservations", "--end", chosen.choice(found))
    else:
        start = chosen.choice(["now", "now+1hour"])
        queue.run("reserve", str(chosen.randrange(3)), "--from", start, "--for", "2h")


def _reservations(queue: Queue) -> list[str]:
    return [one["id"] for one in json.loads(queue.run("reservations", "--json")) if "id" in one]


def _lines(queue: Queue, name: str) -> list[str]:
    path = queue.folder / name
    return path.read_text().splitlines() if path.exists() else []


def _of_jobs(queue: Queue) -> list[psutil.Process]:
    found = []
    for process in queue.processes():
        with contextlib.suppress(psutil.NoSuchProcess):  # it ends just now
            if JOB in process.environ():
                found.append(process)
    return found


def _send(process: psutil.Process, number: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)
