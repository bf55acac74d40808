"""Killed between any two file operations: what was acknowledged is there, and nothing twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.schedule.board import JOBS, Board, posted
from jupyter_dist_server.jobs.schedule.wants import Want
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import COMPLETED, CONFIGURING, PENDING, RUNNING
from jupyter_dist_server.jobs.store.store import Store

from ..waiting import wait_for

JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"))
WRITES = ["pwrite64", "fdatasync", "link", "rename"]
ALL = ["openat", "close", "fcntl", "flock", "ftruncate", "unlink", "utimensat", "mkdir"]
Work = Callable[[Callable[[], int]], None]
CALLS = WRITES + (ALL if "JUPYTER_DIST_CHAOS" in os.environ else [])
"""Calls at the n-th of which a process is killed, for every n."""

pytestmark = pytest.mark.skipif(not shutil.which("strace"), reason="strace kills at a call")


def killed_at(call: str, number: int, work: Work) -> tuple[int, int]:
    """Let a process work that is killed at a call; return what it has acknowledged, and its end.

    Parameters
    ----------
    call : str
        A system call.
    number : int
        The how many-th.
    work : callable
        What it does; gets a function that acknowledges.
    """
    begin, begins = os.pipe()
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.read(begin, 1)
        work(lambda: os.write(tell, b"."))
        os._exit(0)
    inject = f"inject={call}:signal=KILL:when={number}"
    with subprocess.Popen(
        ["strace", "-qq", "-o", os.devnull, "-e", inject, "-p", str(child)],
        stderr=subprocess.PIPE,
    ) as tracer:
        wait_for(lambda: tracer.poll() is not None or _traced(child), "the tracer")
        if tracer.poll() is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.skip("processes cannot be traced here")
        os.write(begins, b"!")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(tell)
    acknowledged = len(os.read(told, 100))
    for descriptor in (begin, begins, told):
        os.close(descriptor)
    return acknowledged, status


def _traced(pid: int) -> bool:
    return "TracerPid:\t0" not in Path(f"/proc/{pid}/status").read_text()


def each_kill(work: Work, syncs: int) -> Iterator[tuple[str, int]]:
    """Yield a name for each kill, and what was acknowledged before it.

    Parameters
    ----------
    work : callable
        What is killed.
    syncs : int
        How often it at least has to have the disk keep what it wrote.
    """
    kills = Counter[str]()
    for call in CALLS:
        for number in range(1, 200):
            acknowledged, status = killed_at(call, number, work)
            yield f"{call} {number}", acknowledged
            if status == 0:
                break
            assert status == -signal.SIGKILL
            kills[call] += 1
    assert kills.total() > 2 and kills["fdatasync"] >= syncs


def test_a_submission(tmp_path: Path) -> None:
    turn = [0]

    def submit(acknowledge: Callable[[], int]) -> None:
        ours = Store(tmp_path / str(turn[0] // 2))  # every second time, into a file that is there
        ours.submit([JOB, JOB], f"token {turn[0]}")
        acknowledge()

    for name, acknowledged in each_kill(submit, syncs=1):
        store = Store(tmp_path / str(turn[0] // 2))
        before = len(store.select())
        assert before % 2 == 0, f"{name}: half of a submission"
        again = store.submit([JOB, JOB], f"token {turn[0]}")
        after = len(store.select())
        if acknowledged:
            assert after == before, f"{name}: an acknowledged job was lost"
        assert after == again.stop - 1, f"{name}: jobs are doubled"
        store.close()
        turn[0] += 1


def test_changes_of_state(tmp_path: Path) -> None:
    states = [PENDING, CONFIGURING, RUNNING, COMPLETED]
    store = Store(tmp_path)
    ids = [store.submit([JOB], "first").start]

    def move(acknowledge: Callable[[], int]) -> None:
        ours = Store(tmp_path)
        for state in states[1:]:
            assert ours.move(ours.get(ids[-1]), state, launch="x")
            acknowledge()

    for name, acknowledged in each_kill(move, syncs=3):
        found = store.get(ids[-1])
        assert states.index(found.state) in (acknowledged, acknowledged + 1), name
        events = [event.state for event in store.events() if event.job == found.id]
        assert events == states[: len(events)] and events[-1] == found.state, name
        ids.append(store.submit([JOB], name).start)
    store.close()


def test_a_board(leases: Path) -> None:
    def show(acknowledge: Callable[[], int]) -> None:
        board = Board(JOBS, "store")
        for number in range(3):
            board.show([Want(str(number), "me", 1.0, gpus=1)], ["GPU-0"])
            acknowledge()
        board.close()

    for name, _ in each_kill(show, syncs=0):
        assert posted() == [], f"{name}: the board of a dead process counts"
        assert not list(leases.glob("*.board")), name
