"""Whatever is killed, no acknowledged job is lost and none runs twice for one attempt."""

from __future__ import annotations

import os
import random
from collections import Counter

import psutil

from ..waiting import wait_for
from .queue_driver import Queue

KILLS = int(os.environ.get("JUPYTER_DIST_CHAOS", "10"))
VICTIMS = ("dist-dispatcher", "dist-zygote", "dist-runner")


def test_random_kills(queue: Queue) -> None:
    seed = random.randrange(10**6)
    chosen = random.Random(seed)
    print(f"seed {seed}")
    code = 'echo "$JDIST_JOB_ID $JDIST_ATTEMPT" >> starts; sleep 0.2; echo $$ >> ended'
    jobs: list[str] = []
    killed = 0
    while killed < KILLS:
        jobs.append(queue.submit("-c", "0", "--requeue", "sh", "-c", code))
        victims = [process for name in VICTIMS for process in queue.processes(name)]
        if victims and chosen.random() < 0.5:
            chosen.choice(victims).kill()
            killed += 1
    for job in jobs:
        wait_for(lambda job=job: queue.show(job)["ended"], f"the end of job {job}")
    states = Counter(queue.show(job)["state"] for job in jobs)
    assert set(states) <= {"COMPLETED", "NODE_FAIL"}, states
    starts = Counter((queue.folder / "starts").read_text().splitlines())
    assert set(starts.values()) == {1}, starts
    done = {line.split()[0] for line in starts}
    completed = {job for job in jobs if queue.show(job)["state"] == "COMPLETED"}
    assert completed <= done
    for name in VICTIMS:
        wait_for(lambda name=name: not queue.processes(name), f"the end of {name}")
    left = [p for p in psutil.process_iter() if _is_ours(p, queue)]
    assert not left
    print(f"{KILLS} kills, {len(jobs)} jobs: {dict(states)}")


def _is_ours(process: psutil.Process, queue: Queue) -> bool:
    try:
        environment = process.environ()
    except psutil.Error:
        return False
    return "JUPYTER_DIST_JOB" in environment and environment.get("XDG_STATE_HOME") == str(
        queue.folder
    )
