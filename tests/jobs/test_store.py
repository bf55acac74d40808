"""The file of all jobs: what is acknowledged is there, and states change only as they may."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.common.patience import patience
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import (
    CANCELLED,
    COMPLETED,
    CONFIGURING,
    PENDING,
    RUNNING,
)
from jupyter_dist_server.jobs.store.store import Store

from ..waiting import PATIENCE
from .conftest import Child

JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"))


def test_a_token_is_taken_once(store: Store) -> None:
    assert store.submit([JOB, JOB], "one") == store.submit([JOB, JOB], "one") == range(1, 3)
    assert store.submit([JOB], "two") == range(3, 4)
    assert [job.id for job in store.pending()] == [1, 2, 3]


def test_a_store_that_is_opened_and_closed_ends_no_lock_of_another(tmp_path: Path) -> None:
    ours = Store(tmp_path)
    ours.submit([JOB], "one")
    Store(tmp_path).close()
    # The last process that closes the file takes its log away, which must not be ours.
    code = "import sys, pathlib; from jupyter_dist_server.jobs.store.store import Store as S; "
    code += "S(pathlib.Path(sys.argv[1])).close()"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=PATIENCE)
    assert (tmp_path / "queue.db-wal").exists()
    ours.submit([JOB], "two")
    assert len(ours.pending()) == 2
    ours.close()


def test_names_of_files_that_are_no_unicode_are_kept(store: Store) -> None:
    odd = os.fsdecode(b"caf\xe9\n.py")
    job = Job(params={"x": odd}, name=odd, spec=Spec(argv=["cat", odd], cwd="/"))
    with pytest.raises(UnicodeEncodeError):
        odd.encode()
    ids = store.submit([job], "odd", environment={"ODD": odd})
    found = store.get(ids[0])
    assert (found.spec.argv[1], found.params["x"], store.environment(found)) == (
        odd,
        odd,
        {"ODD": odd},
    )


def test_a_state_changes_only_from_the_one_that_was_read(store: Store) -> None:
    job = store.get(store.submit([JOB], "one")[0])
    assert store.move(job, CONFIGURING, launch="x")
    assert not store.move(job, CANCELLED)
    started = store.get(job.id)
    assert store.move(started, RUNNING)
    running = store.get(job.id)
    assert store.move(running, COMPLETED)
    with pytest.raises(AssertionError):
        store.move(store.get(job.id), RUNNING)
    assert store.move(store.get(job.id), PENDING, attempt=2, launch=None)
    assert not store.move(running, COMPLETED)  # by the runner of the first attempt
    states = [event.state for event in store.events()]
    assert states == [PENDING, CONFIGURING, RUNNING, COMPLETED, PENDING]


def test_writers_in_many_processes(store: Store) -> None:
    def work(number: int) -> None:
        ours = Store(store.folder)
        for turn in range(20):
            ours.submit([JOB], f"{number}-{turn}")
        ours.close()

    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work, args=(number,)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert [job.id for job in store.pending()] == list(range(1, 81))


def test_a_writer_that_is_killed_leaves_all_that_it_acknowledged(store: Store) -> None:
    told, tell = os.pipe()
    writer = os.fork()
    if not writer:
        ours = Store(store.folder)
        for turn in range(1_000_000):
            ours.submit([JOB], str(turn))
            os.write(tell, b".")
    acknowledged = 0
    while acknowledged < 50:
        acknowledged += len(os.read(told, 64))
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    os.set_blocking(told, False)
    acknowledged += len(os.read(told, 65536) or b"") if _has_more(told) else 0
    assert len(store.pending()) in (acknowledged, acknowledged + 1)
    store.submit([JOB], "more")  # its lock is free


def test_many_that_make_the_file_at_once(tmp_path: Path) -> None:
    for turn in range(20):
        begin, ready = os.pipe()
        openers = [os.fork() or _open_after(begin, ready, tmp_path / f"{turn}") for _ in range(8)]
        os.close(begin)
        os.close(ready)  # now all begin
        assert [os.waitpid(opener, 0)[1] for opener in openers] == [0] * 8


def _open_after(begin: int, ready: int, folder: Path) -> int:
    try:
        os.close(ready)
        os.read(begin, 1)
        Store(folder).close()
        os._exit(0)
    finally:
        os._exit(1)


def test_a_writer_that_was_stopped_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child(lambda: _writing(store.folder))
    os.kill(child.pid, signal.SIGSTOP)
    with monkeypatch.context() as patch:
        patch.setattr(patience, "factor", 0.003)
        with pytest.raises(
            DistError, match=f"Process {child.pid} has kept .* it is stopped"
        ) as caught:
            store.submit([JOB], "one")
    assert caught.value.code == "queue_locked"
    child.kill()
    store.submit([JOB], "one")


def _writing(folder: Path) -> Any:
    ours = Store(folder)
    change = ours.writing()
    change.__enter__()
    return ours, change


def _has_more(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "queue.db").write_bytes(b"nonsense" * 1000)
    with pytest.raises(DistError) as caught:
        Store(tmp_path)
    assert caught.value.code == "queue_unusable"
    assert (tmp_path / "queue.db").read_bytes().startswith(b"nonsense")
