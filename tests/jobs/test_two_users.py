"""Two users on one machine with eight GPUs: each has a dispatcher, and they take turns."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing, suppress
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.jobs.leases.lease import Lease, running
from jupyter_dist_server.jobs.schedule.board import posted
from jupyter_dist_server.jobs.schedule.overview import overview
from jupyter_dist_server.jobs.store.states import PENDING, RUNNING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder
from jupyter_dist_server.placement.allocate_gpus import Allocator
from jupyter_dist_server.placement.new_pool_record import new_record
from jupyter_dist_server.placement.requests.request import PoolRequest

from ..waiting import PATIENCE, wait_for
from .queue_driver import AS_OTHER, OTHER, UNTIL_GO, OtherQueue, Queue

pytestmark = pytest.mark.root


def take(*gpus: int) -> Lease:
    """Lease GPUs as a pool does."""
    who = Leaseholder(pool=f"p-{gpus[0]}", pid=os.getpid(), since=1.0, notebook="a", host="h")
    return Lease.take([f"GPU-fake-{gpu}" for gpu in gpus], who)


def waiting() -> dict[int, int]:
    """Return how many entries the boards of each user show."""
    return {board.uid: sum(entry.count for entry in board.content.queue) for board in posted()}


def states(queue: Queue) -> list[str]:
    return [job["state"] for job in json.loads(queue.run("queue", "--json"))]


def test_users_take_turns_and_see_each_other(queue: Queue, other: OtherQueue) -> None:
    with closing(take(*range(8))):
        queue.submit("-c", "0", "-G", "1", "-a", "1-12", *UNTIL_GO)
        other.submit("-c", "0", "-G", "1", "-J", "theirs", "-a", "1-12", *UNTIL_GO)
        wait_for(lambda: waiting() == {0: 12, OTHER: 12}, "both to wait")
    wait_for(lambda: waiting() == {0: 8, OTHER: 8}, "eight jobs to start")
    wait_for(lambda: states(queue).count("RUNNING") == 4, "four of each")
    store = Store(store_folder())
    try:
        rows = [row for row in overview(store) if row.user == str(OTHER)]
    finally:
        store.close()
    assert [row.state for row in rows] == [RUNNING] * 4 + [PENDING] * 8
    assert {row.name for row in rows} == {"theirs"}
    assert sum(len(row.gpu_uuids) for row in rows) == 4


def test_whoever_waits_sleeps(queue: Queue, other: OtherQueue) -> None:
    with closing(take(*range(8))):
        other.submit("-c", "0", "-G", "8", "true")
        queue.submit("-c", "0", "-G", "8", "true")
        queue.submit("-H", "-c", "0", "sleep", "1000")
        wait_for(lambda: waiting() == {0: 1, OTHER: 1}, "both to wait")
        both = [other.dispatcher(), *queue.processes("dist-dispatcher")]
        wait_for(lambda: _wake_ups(both) < 10, "neither to wake the other again and again")
    queue.run("cancel", "--all")


def _wake_ups(processes: list[psutil.Process], seconds: float = 1.0) -> int:
    """Return how often processes are woken within some time."""
    before = sum(process.num_ctx_switches().voluntary for process in processes)
    threading.Event().wait(seconds)
    return sum(process.num_ctx_switches().voluntary for process in processes) - before


def test_a_dispatcher_that_was_stopped_is_passed_over(queue: Queue, other: OtherQueue) -> None:
    with closing(take(*range(8))):
        theirs = other.submit("-c", "0", "-G", "8", "true")
        wait_for(lambda: waiting() == {OTHER: 1}, "theirs to wait")
        ours = queue.submit("-c", "0", "-G", "8", "true")
        wait_for(lambda: waiting() == {0: 1, OTHER: 1}, "both to wait")
        stopped = other.dispatcher()
        stopped.send_signal(signal.SIGSTOP)
        released = time.time()
    assert queue.ended(ours)["state"] == "COMPLETED"
    assert queue.show(ours)["started"] - released > 4, "it was theirs to start first"
    stopped.send_signal(signal.SIGCONT)
    assert other.ended(theirs)["state"] == "COMPLETED"


def test_the_board_of_a_killed_dispatcher_does_not_count(queue: Queue, other: OtherQueue) -> None:
    with closing(take(*range(8))):
        theirs = other.submit("-c", "0", "-G", "8", "true")
        wait_for(lambda: waiting() == {OTHER: 1}, "theirs to wait")
        ours = queue.submit("-c", "0", "-G", "8", "true")
        wait_for(lambda: waiting() == {0: 1, OTHER: 1}, "both to wait")
        other.dispatcher().kill()  # its zygote ends with it
        wait_for(lambda: waiting() == {0: 1}, "its board to go")
    assert queue.ended(ours)["state"] == "COMPLETED"
    assert other.ended(theirs)["state"] == "COMPLETED"
    assert other.show(theirs)["started"] > queue.show(ours)["started"]


def test_a_board_that_lies_only_delays(queue: Queue, other: OtherQueue) -> None:
    lie = (
        "import fcntl, json, sys, time\n"
        "file = open(sys.argv[1] + '/lie.board', 'w')\n"
        "entry = {'id': '1', 'queued': 0, 'gpus': 8, 'head_since': 0, 'count': 1000000}\n"
        "sees = [f'GPU-fake-{n}' for n in range(8)]\n"
        "json.dump({'kind': 'jobs', 'pid': 1, 'sees': sees, 'queue': [entry]}, file)\n"
        "file.flush()\n"
        "fcntl.flock(file, fcntl.LOCK_EX)\n"
        "print('up', flush=True)\n"
        "time.sleep(1000)\n"
    )
    assert waiting() == {}
    folder = os.environ["JUPYTER_DIST_LEASES"]
    with subprocess.Popen(
        [*AS_OTHER, sys.executable, "-c", lie, folder], stdout=subprocess.PIPE
    ) as liar:
        assert liar.stdout and liar.stdout.readline() == b"up\n"
        try:
            job = queue.submit("-c", "0", "-G", "1", "true")
            wait_for(lambda: queue.show(job)["state"] == "COMPLETED", "its end")
        finally:
            liar.kill()


async def test_a_pool_waits_for_a_job_of_another_user(queue: Queue, other: OtherQueue) -> None:
    theirs = await asyncio.to_thread(other.submit, "-c", "0", "-G", "8", "-J", "x", *UNTIL_GO)
    with ExitStack() as stack:
        await asyncio.to_thread(
            wait_for, lambda: (other.folder / "jupyter-dist").exists() and _holds(OTHER), "its GPUs"
        )
        request = PoolRequest.from_json({"num_ranks": 2, "wait": PATIENCE})
        allocator = Allocator(request, new_record(request))
        with pytest.raises(DistError, match=f"leased by {OTHER} .job {theirs} of x"):
            await allocator.now()
        told: asyncio.Queue[str] = asyncio.Queue()
        getting = asyncio.create_task(allocator.in_line(lambda reason, _: told.put_nowait(reason)))
        await told.get()
        assert waiting()[0] == 1
        pool = _rows()[-1]
        assert (pool.kind, pool.state, pool.gpus, pool.id[:2]) == ("pool", PENDING, 2, "p-")
        (other.folder / "go").touch()
        allocation = stack.enter_context(closing(await getting))
        assert waiting() == {}
        # The runner of the job may have freed its GPUs, and not yet said so.
        await asyncio.to_thread(wait_for, lambda: len(_rows()) == 1, "one to be left")
        (pool,) = _rows()
        assert (pool.kind, pool.state) == ("pool", RUNNING)
        assert list(pool.gpu_uuids) == [gpu.uuid for gpu in allocation.placement.used]


def _rows() -> list[Any]:
    with closing(Store(store_folder())) as store:
        return list(overview(store))


def _holds(uid: int) -> Any:
    return [said for said in running() if said.user == str(uid)]


def test_nothing_depends_on_seeing_processes_of_others(queue: Queue, contained: OtherQueue) -> None:
    both = queue, contained
    seen = subprocess.run([*contained.inside, *AS_OTHER, "ls", "/proc"], capture_output=True)
    assert len([name for name in seen.stdout.split() if name.isdigit()]) == 1, "its own"
    with closing(take(*range(8))):
        queue.submit("-c", "0", "-G", "1", "-a", "1-12", *UNTIL_GO)
        contained.submit("-c", "0", "-G", "1", "-J", "theirs", "-a", "1-12", *UNTIL_GO)
        wait_for(lambda: waiting() == {0: 12, OTHER: 12}, "both to wait")
    for each in both:
        wait_for(lambda each=each: states(each).count("RUNNING") == 4, "four of each")
    for each in both:
        assert users_of_gpus(each) == {"root": 4, str(OTHER): 4}
    for runner in contained.processes("dist-runner"):
        with suppress(psutil.NoSuchProcess):  # one that had not become its job yet
            runner.kill()
    wait_for(lambda: ends(contained) == {"NODE_FAIL": 4}, "the end of jobs without a runner")
    wait_for(lambda: users_of_gpus(queue).total() == 8, "the next jobs to start")
    for each in both:  # both first: jobs of one of them may have all GPUs
        (each.folder / "go").touch()
    for each in both:
        wait_for(lambda each=each: states(each) == [], "the end of all jobs")
    assert ends(queue) == {"COMPLETED": 12}
    assert ends(contained) == {"COMPLETED": 8, "NODE_FAIL": 4}


def users_of_gpus(queue: Queue) -> Counter[str]:
    """Return how many GPUs each user has, as one of them sees it."""
    found = [gpu["leaseholder"] for gpu in json.loads(queue.run("info", "--json"))["gpus"]]
    return Counter(holder["user"] for holder in found if holder)


def ends(queue: Queue) -> Counter[str]:
    """Return how many jobs have ended in which state."""
    return Counter(job["state"] for job in json.loads(queue.run("history", "--json")))
