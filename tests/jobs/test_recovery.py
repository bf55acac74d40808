"""What becomes of jobs whose processes or whose machine went down: each promise by itself."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from jupyter_dist_server.common.files.shared_folder import FOLDER
from jupyter_dist_server.common.processes.process_ref import boot_id
from jupyter_dist_server.jobs import job_end
from jupyter_dist_server.jobs.job_command import job_environment, make_folders
from jupyter_dist_server.jobs.job_end import recover
from jupyter_dist_server.jobs.start_dispatcher import take_lock
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import (
    CANCELLED,
    COMPLETED,
    CONFIGURING,
    FAILED,
    NODE_FAIL,
    PENDING,
    RUNNING,
)
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_file import VERSION
from jupyter_dist_server.jobs.store.store_folder import store_folder
from jupyter_dist_server.jobs.variables import JOB as JOB_VARIABLE

from ..server_driver import Server
from ..waiting import PATIENCE, wait_for
from .queue_driver import Queue

JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"))
AGAIN = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/", requeue=1))


def started(store: Store, job: Job, *states: str, boot: str | None = None) -> Job:
    """Bring a new job into a state, as a dispatcher and a runner do."""
    (id,) = store.submit([job], os.urandom(8).hex())
    for state in states:
        fields: dict[str, Any] = {"launch": "x", "boot": boot or boot_id()}
        assert store.move(
            store.get(id), state, **fields | ({"started": 1.0} if state == RUNNING else {})
        )
    return store.get(id)


def test_what_was_not_started_waits_again_when_its_runner_is_gone(store: Store) -> None:
    job = started(store, JOB, CONFIGURING)
    recover(store)
    found = store.get(job.id)
    assert (found.state, found.attempt, found.launch) == (PENDING, 1, None)


def test_nothing_is_taken_from_a_runner_that_lives(store: Store) -> None:
    jobs = [started(store, JOB, CONFIGURING), started(store, JOB, CONFIGURING, RUNNING)]
    with ExitStack() as files:
        for job in jobs:
            fcntl.flock(files.enter_context(store.run_lock(job).open("w")), fcntl.LOCK_EX)
        recover(store)
        assert [store.get(job.id) for job in jobs] == jobs
    recover(store)
    assert [store.get(job.id).state for job in jobs] == [PENDING, NODE_FAIL]


def test_a_cancelled_job_is_not_started_again_when_its_runner_is_gone(store: Store) -> None:
    job = started(store, AGAIN, CONFIGURING, RUNNING)
    store.change([job.id], cancel_at=1.0)
    recover(store)
    found = store.get(job.id)
    assert (found.state, found.attempt) == (CANCELLED, 1)
    assert found.detail == "Cancelled. Its runner was killed meanwhile."


def test_a_cancel_while_its_end_is_found_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = started(store, AGAIN, CONFIGURING, RUNNING)

    def cancelled_meanwhile(job: Job) -> None:
        store.change([job.id], cancel_at=1.0)

    monkeypatch.setattr(job_end, "end_leftovers", cancelled_meanwhile)
    recover(store)
    assert store.get(job.id).state == CANCELLED


def test_a_start_while_an_earlier_one_is_cleared_up_keeps_its_leases(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes find that the first one is lost, and one of them starts it again."""
    kept: list[Path] = []

    def started_meanwhile(job: Job) -> None:
        monkeypatch.undo()
        recover(store)
        again = store.get(job.id)
        assert store.move(again, CONFIGURING, launch="y", boot=boot_id())
        again = store.get(job.id)
        make_folders(again, store)
        kept.append(Path(job_environment(again, store)[FOLDER], "0.lease"))
        kept[0].touch()

    job = started(store, replace(JOB, gpus=1), CONFIGURING)
    make_folders(job, store)
    monkeypatch.setattr(job_end, "end_leftovers", started_meanwhile)
    recover(store)
    assert kept[0].exists()
    assert [path.name for path in kept[0].parent.parent.iterdir()] == [kept[0].parent.name]


def test_after_a_restart_of_the_machine(store: Store) -> None:
    waiting = store.submit([JOB] * 100, "many")
    configuring = started(store, JOB, CONFIGURING, boot="earlier")
    running = started(store, JOB, CONFIGURING, RUNNING, boot="earlier")
    again = started(store, AGAIN, CONFIGURING, RUNNING, boot="earlier")
    recover(store)
    assert {store.get(id).state for id in waiting} == {PENDING}
    assert store.get(configuring.id).state == PENDING
    lost = store.get(running.id)
    assert (lost.state, lost.detail) == (NODE_FAIL, "The machine was restarted.")
    found = store.get(again.id)
    assert (found.state, found.attempt) == (PENDING, 2)
    assert [one.state for one in store.attempts([again.id])[again.id]] == [NODE_FAIL]


def test_jobs_that_waited_start_after_a_restart_of_the_machine(queue: Queue) -> None:
    queue.submit("-H", "-c", "0", "-a", "1-100", "true")
    for process in queue.processes():
        process.kill()
    queue.run("release", "--all")
    wait_for(lambda: len(json.loads(queue.run("history", "-n", "200", "--json"))) == 100, "all 100")


def test_a_hold_and_a_start_at_once(store: Store) -> None:
    """Whichever is first wins, and the other is told."""
    from jupyter_dist_server.jobs import job_control

    (id,) = store.submit([JOB], "one")
    seen = store.get(id)
    assert job_control.hold(store, [seen]) == []
    held = store.get(id)
    assert (held.held, held.reason) == (True, "JobHeldUser")
    assert not store.move(seen, CONFIGURING, launch="x", boot=boot_id())
    store.change([id], held=False)
    assert store.move(seen, CONFIGURING, launch="x", boot=boot_id())
    assert job_control.hold(store, [seen]) == ["Job 1 cannot be held: it is CONFIGURING."]


def alive(queue: Queue) -> list[psutil.Process]:
    """Return the processes of the queue that run; some of them end by themselves meanwhile."""
    found = []
    for process in queue.processes():
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_everything_of_a_user_is_killed_at_once(queue: Queue) -> None:
    code = "echo $JDIST_ATTEMPT; while [ ! -e go ]; do sleep 0.05; done"
    lost = queue.submit("-c", "0", "sh", "-c", code)
    again = queue.submit("-c", "0", "--requeue", "sh", "-c", code)
    waits = queue.submit("-c", "0", "-d", f"afterany:{lost}", "true")
    for job in (lost, again):
        wait_for(lambda job=job: queue.show(job)["started"] and queue.output(job), "output")
    victims: set[psutil.Process] = set()
    while new := set(alive(queue)) - victims:  # none may live to see that others have ended
        for process in new:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        victims |= new
    for process in victims:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_for(lambda: not alive(queue), "the end of all processes")
    (queue.folder / "go").touch()
    assert queue.show(lost)["state"] == NODE_FAIL, "the next command says so"
    assert queue.ended(waits)["state"] == COMPLETED
    assert queue.ended(again)["attempt"] == 2


def test_a_server_in_a_job_has_others_repaired(queue: Queue) -> None:
    """The runner of its job does that, as a dispatcher of its own would end with the job."""
    around = queue.submit("-c", "0", "sleep", "1000")
    lost = queue.submit("-c", "0", "sleep", "1000")
    for job in (around, lost):
        queue.until(job, RUNNING)
    wait_for(lambda: not queue.processes("dist-dispatcher"), "the dispatcher's end")
    with closing(Store(store_folder())) as store:
        inside = {JOB_VARIABLE: f"{around}.{store.get(int(around)).launch}"}
        home = queue.folder / "home"
        server = Server(home, queue.folder, XDG_STATE_HOME=str(queue.folder), **inside)
        try:
            runner = psutil.Process(store.get(int(lost)).runner_pid)
            runner.kill()
            runner.wait(PATIENCE)
            server.api("GET", f"jupyter-dist/jobs/{lost}")
            wait_for(lambda: store.get(int(lost)).state == NODE_FAIL, "the repair")
        finally:
            server.close()


@pytest.mark.parametrize("beside", [True, False])
def test_an_end_that_was_left_in_a_file(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    monkeypatch.setattr(job_end, "TEMPORARY", tmp_path)
    job = started(store, JOB, CONFIGURING, RUNNING)
    if not beside:  # nothing can be written there
        blocked = store.folder / f"{job.id}.1.exit.json.{os.getpid()}"
        blocked.mkdir()
    job_end.leave_end(store, job, {"state": COMPLETED, "ended": 5.0, "exit_code": 0})
    assert len(list(tmp_path.glob("jdist-*.exit.json"))) == (0 if beside else 1)
    recover(store)
    found = store.get(job.id)
    assert (found.state, found.ended, found.exit_code) == (COMPLETED, 5.0, 0)
    assert not [*tmp_path.glob("jdist-*"), *store.folder.glob("*.exit.json")]


def test_an_end_that_two_processes_find_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = started(store, JOB, CONFIGURING, RUNNING)
    job_end.leave_end(store, job, {"state": COMPLETED, "ended": 5.0, "exit_code": 0})
    write = job_end.write_end

    def taken_meanwhile(*args: Any) -> None:
        with monkeypatch.context() as other:
            other.setattr(job_end, "write_end", write)
            assert job_end.take_end(store, job)
        write(*args)

    monkeypatch.setattr(job_end, "write_end", taken_meanwhile)
    recover(store)
    assert store.get(job.id).state == COMPLETED
    assert len(store.attempts([job.id])[job.id]) == 1


def test_a_kill_between_an_end_and_its_requeue_loses_neither(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are one change: a runner that is killed there leaves a job that is still to be ended."""
    spec = Spec(argv=["false"], cwd="/", requeue_on=[75])
    job = started(store, Job(params={}, name="a", spec=spec), CONFIGURING, RUNNING)
    ended = {"state": FAILED, "ended": 5.0, "exit_code": 75}
    with monkeypatch.context() as killed:
        killed.setattr(job_end, "start_again", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            job_end.write_end(store, job, ended)
    assert store.get(job.id) == job
    job_end.leave_end(store, job, ended)
    recover(store)
    found = store.get(job.id)
    assert (found.state, found.attempt, found.exit_code) == (PENDING, 2, None)


@pytest.mark.root
def test_an_end_that_another_user_tells_is_not_believed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_end, "TEMPORARY", tmp_path)
    job = started(store, JOB, CONFIGURING, RUNNING)
    *_, path = job_end._paths(store, job)
    path.write_text(json.dumps({"state": CANCELLED}))
    os.chown(path, 64321, 64321)
    recover(store)
    assert store.get(job.id).state == NODE_FAIL


def test_a_dispatcher_ends_when_a_newer_version_has_changed_the_queue(queue: Queue) -> None:
    later = queue.submit("-c", "0", "--begin", "now+1hour", "true")
    wait_for(lambda: queue.processes("dist-dispatcher"), "a dispatcher")
    with closing(Store(store_folder())) as store:
        store._db.execute("PRAGMA user_version = 999")
        store.changed()
        wait_for(lambda: not alive(queue), "its end")
        assert f"knows {VERSION}" in (store.folder / "dispatcher.log").read_text(), "it began anew"
        store._db.execute(f"PRAGMA user_version = {VERSION}")
    queue.run("update", "--comment", "again", later)
    wait_for(lambda: queue.processes("dist-dispatcher"), "another one")


OLDER = """
from jupyter_dist_server.common.processes import python_command
from jupyter_dist_server.jobs.store import store_file
from jupyter_dist_server.jobs import dispatcher_process
store_file.VERSION -= 1
store_file._STEPS = store_file._STEPS[:-1]
python_command.python_command = lambda python, module: [python, __file__]
dispatcher_process.main()
"""
"""A dispatcher of a version that does not know the newest format, and so are those it starts."""


def test_a_newer_version_takes_the_place_of_an_older_dispatcher(queue: Queue) -> None:
    """Nobody runs another command: that would start one, too."""
    program = queue.folder / "older.py"
    program.write_text(OLDER)
    with closing(Store(store_folder())) as store:
        store.submit([replace(JOB, begin=4e9)], "later")
        store._db.execute(f"PRAGMA user_version = {VERSION - 1}")
        lock = take_lock(store.folder)
        assert lock
        file = lock.fileno()
        command = [sys.executable, str(program), str(store.folder), str(file)]
        with lock:
            older = subprocess.Popen(command, pass_fds=[file])
        with older:
            wait_for(lambda: store.get(1).reason == "BeginTime", "its work")
            queue.run_program("submit", "-c", "0", "true")
            wait_for(lambda: store.get(2).state == COMPLETED, "the job's end")
            assert older.wait(PATIENCE) == 1
