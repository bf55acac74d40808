"""Boards: what those who wait show each other, and what becomes of it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.common.protocol.leaseholder import Leaseholder
from jupyter_dist_server.gpus.gpu_state import GpuState
from jupyter_dist_server.gpus.inventory import Gpu, Inventory
from jupyter_dist_server.jobs.file_changes import Wake
from jupyter_dist_server.jobs.leases.held_file import read_held
from jupyter_dist_server.jobs.leases.lease import Lease
from jupyter_dist_server.jobs.schedule import trust
from jupyter_dist_server.jobs.schedule.board import JOBS, POOL, Board, order_lock, posted, wants_of
from jupyter_dist_server.jobs.schedule.plan import Plan, Reservation, plan
from jupyter_dist_server.jobs.schedule.situation import situation
from jupyter_dist_server.jobs.schedule.trust import Trust
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import CONFIGURING

from .conftest import Child

SEEN = ["GPU-0", "GPU-1"]


def want(id: str, gpus: int = 1, **fields: Any) -> Want:
    return Want(id, "me", 1000.0, gpus=gpus, **fields)


def show(*wants: Want) -> Board:
    board = Board(JOBS, "store")
    board.show(wants, SEEN)
    return board


def names(*said: Want) -> list[str]:
    return [one.id.split()[-1] for one in said or wants_of(posted())]


def test_others_read_what_a_board_shows(leases: Path) -> None:
    wants = [
        *(want(str(n), cpus=1, name="train") for n in range(3)),
        want("9", 2, only=frozenset(["GPU-1"]), limit=60.0, memory=2**40, share=2**35, priority=-5),
    ]
    board = show(*wants)
    (told,) = posted()
    assert (told.uid, told.content.store, told.content.sees) == (os.getuid(), "store", SEEN)
    assert len(told.content.queue) == 2, "the same again is one entry"
    said = list(told.wants)
    assert names(*said) == ["0", "0+1", "0+2", "9"]
    for mine, theirs in zip(wants, said, strict=True):
        assert theirs.need[1:] == (mine.gpus, mine.only or frozenset(SEEN), *mine.need[3:])
        assert theirs.limit == mine.limit
        assert (theirs.priority, theirs.queued, theirs.name) == (mine.priority, 1000.0, mine.name)
    before = told.changed
    board.show(wants, SEEN)
    assert posted()[0].changed == before, "what is the same wakes nobody"
    board.show([], SEEN)
    assert posted() == []
    assert [*leases.iterdir()] == []


def test_a_board_counts_while_its_process_lives(leases: Path) -> None:
    child = Child(lambda: show(want("1")))
    assert names() == ["1"]
    os.kill(child.pid, signal.SIGSTOP)
    assert names() == ["1"]
    child.kill()
    assert names() == []
    assert [*leases.iterdir()] == []


def test_a_long_board_is_cut_at_a_whole_entry(leases: Path) -> None:
    board = show(*(want(str(n), priority=-n) for n in range(10_000)))
    (file,) = leases.iterdir()
    assert 60_000 < file.stat().st_size <= 65_536
    assert names() == [str(n) for n in range(256)], "of one user a few hundred count"
    board.close()


def test_a_board_that_was_removed_is_shown_again(leases: Path) -> None:
    board = show(want("1"))
    next(leases.iterdir()).unlink()
    assert posted() == []
    board.show([want("1")], SEEN)
    assert names() == ["1"]
    board.close()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no JSON",
        b"[" * 60_000,
        b'{"kind": "jobs"}',
        b'{"kind": "jobs", "pid": "1"}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1"}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": NaN}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": 1e300}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": 1, "gpus": -1}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": 1, "gpus": 1e9}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": 1, "only": [1]}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": 1, "limit": 0}]}',
        b'{"kind": "jobs", "pid": 1, "queue": [{"id": "1", "queued": 1, "count": 0}]}',
        json.dumps({"kind": "jobs", "pid": 1, "queue": [{"id": "x" * 70_000}]}).encode(),
    ],
)
def test_what_is_malformed_is_left_out(leases: Path, content: bytes) -> None:
    board = show(want("1"))
    path = leases / "evil.board"
    with open(path, "w+b") as file:
        file.write(content)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        assert names() == ["1"]
    board.close()


def test_of_a_folder_that_has_just_been_removed_nothing_is_read(leases: Path) -> None:
    """Between looking for it and listing it."""
    assert [*read_held(leases, ".board", bytes.decode, 10)] == []


def test_a_lie_is_bounded(leases: Path) -> None:
    entry = {"id": "\x1b[2J 7", "queued": 2**31, "count": 10**6, "head_since": 0.0}
    board = show(want("1"))
    path = leases / "evil.board"
    with open(path, "w") as file:
        json.dump({"kind": "jobs", "pid": 1, "queue": [entry]}, file)
        file.flush()
        fcntl.flock(file, fcntl.LOCK_EX)
        lies = [one for one in wants_of(posted()) if one.id.startswith("evil")]
    assert len(lies) <= 256
    assert all(one.queued <= time.time() and one.id.isprintable() for one in lies)
    board.close()


def planned(*starts: str, kept_for: str | None = None) -> Plan:
    head = Reservation(kept_for, frozenset(SEEN), 0.0, False, 0, 0) if kept_for else None
    kept = frozenset(SEEN) if kept_for else frozenset()
    return Plan((), dict.fromkeys(starts, ("GPU-0",)), {}, head, kept)


def test_who_takes_nothing_is_passed_over_until_it_shows_something(
    leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(trust, "monotonic", lambda: clock[0])
    board, ours = show(want("1")), Trust()
    (told,) = ours.who_counts(posted())
    start = planned(f"{told.file} 1")
    assert ours.note([told], planned("5")) is None, "our own entries are not waited for"
    assert ours.note([told], start) == 5.0
    clock[0] += 4.0
    assert ours.note(ours.who_counts(posted()), start) == 1.0
    assert ours.note(ours.who_counts(posted()), planned()) is None, "its GPUs are taken meanwhile"
    assert ours.note(ours.who_counts(posted()), start) == 5.0
    clock[0] += 5.0
    assert ours.who_counts(posted()) == []
    board.beat()
    assert len(ours.who_counts(posted())) == 1
    board.close()


def test_gpus_are_not_kept_for_ever_for_who_says_to_be_first(
    leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(trust, "monotonic", lambda: clock[0])
    board, ours = show(want("1", 2, head_since=0.0)), Trust()
    machine = Machine(dict.fromkeys(SEEN, 1), cpus=1)
    running = [InUse("pool", "bob", frozenset(["GPU-0"]), 1000.0)]

    def look() -> Plan:
        boards = ours.who_counts(posted())
        mine = Want("2", "ada", 2000.0, gpus=1)
        found = plan(machine, running, [*wants_of(boards), mine], 3000.0)
        ours.note(boards, found)
        return found

    assert not look().starts and look().kept
    clock[0] += 3599.0
    board.beat()
    assert not look().starts
    clock[0] += 1.0
    assert look().starts == {"2": ("GPU-1",)}
    board.close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no affinity")
def test_others_first_have_the_cores_that_we_may_not_use(leases: Path) -> None:
    """As a container has it that shares the folder with others."""
    allowed, cores = os.sched_getaffinity(0), os.cpu_count() or 1
    os.sched_setaffinity(0, [min(allowed)])
    board = show(want("1", 0, cpus=cores - 1), want("2", 0, cpus=cores))
    holder = Leaseholder(pool="job-7-of-others", pid=1, since=1.0, job=7, cpus=cores - 1)
    try:
        with closing(Lease.take([], holder)):
            found = situation(None, [], posted())
            assert found.machine.cpus == 1
            assert [one.cpus for one in found.held] == [0]
            assert {one.id.split()[-1]: one.cpus for one in found.ordered} == {"1": 0, "2": 1}
    finally:
        os.sched_setaffinity(0, allowed)
        board.close()


def test_the_order_lock_is_waited_for_and_then_done_without(
    leases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with order_lock() as got:
        assert got

    def hold() -> Any:
        turn = order_lock()
        turn.__enter__()
        return turn

    child = Child(hold)
    with monkeypatch.context() as patch:
        patch.setattr(patience, "factor", 0.05)
        with order_lock() as got:
            assert not got
    child.kill()
    with order_lock() as got:
        assert got


def test_a_change_wakes_and_a_wiped_folder_is_watched_again(leases: Path) -> None:
    board = show(want("1"))
    wake = Wake([leases])
    assert wake.watches
    wake.wait(0)
    begun = time.monotonic()
    child = Child(lambda: show(want("2")))
    assert wake.wait(60) == set()
    child.kill()  # the end of a process wakes, too
    assert wake.wait(60) == set()
    board.close()
    for path in leases.iterdir():
        path.unlink()
    leases.rmdir()
    wake.wait(0.01)
    assert not wake.watches
    board = show(want("3"))
    wake.wait(60)
    assert wake.watches and time.monotonic() - begun < 60
    board.close()
    wake.close()


def test_without_inotify_waits_are_short(leases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoneLeft:
        def __init__(self) -> None:
            raise OSError(24, "no instance left")

    monkeypatch.setattr("jupyter_dist_server.jobs.file_changes.inotify.Inotify", NoneLeft)
    wake = Wake([leases])
    assert not wake.watches
    assert wake.wait(None) == set(), "a second, not for ever"
    wake.close()


def test_a_job_that_is_about_to_start_has_its_limit(leases: Path) -> None:
    spec = Spec(argv=["true"], cwd="/")
    job = Job(params={}, name="a", spec=spec, state=CONFIGURING, gpus=1, gpu_uuids=("GPU-0",))
    for limit, known in ((60.0, True), (None, False)):
        there = situation(None, [], [], active=[replace(job, limit=limit)])
        (held,) = there.held
        assert held.has_known_end(there.now) is known


def test_memory_of_a_shared_gpu_is_summed_across_users(leases: Path) -> None:
    def share(gigabytes: int) -> Lease:
        who = Leaseholder(pool=f"p-{gigabytes}", pid=os.getpid(), share_mib=gigabytes << 10)
        return Lease.take(["GPU-0"], who, shared=True)

    gpu = Gpu(0, "GPU-0", "H100", 80 << 30, "00", "9.0")
    child = Child(lambda: share(50), 65534 if os.getuid() == 0 else None)
    seen = GpuState(Inventory((gpu,)))
    for gigabytes, starts in ((30, True), (31, False)):
        there = situation(seen, [want("1", share=gigabytes << 30)], [])
        assert bool(there.plan().starts) is starts
    child.kill()


async def test_a_change_wakes_an_event_loop(leases: Path) -> None:
    board = Board(POOL)
    board.show([want("1")])
    wake = Wake([leases])
    begun = time.monotonic()
    await wake.changed(0.01)
    board.show([want("2")])
    await wake.changed(600)
    assert time.monotonic() - begun < 300
    board.close()
    wake.close()
