"""What rarely happens: full disks, packages that go away, clocks that change, limits that move."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psutil
import pytest

import jupyter_dist_server
from jupyter_dist_server.common.policy import PATH
from jupyter_dist_server.jobs.log_reader import PIECE, LogReader, fold
from jupyter_dist_server.jobs.schedule.may_start import obstacles
from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.slurm_formats import read_moment
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..waiting import PATIENCE, wait_for
from .queue_driver import JDIST, Queue

LOOP = "echo up; while [ ! -e go ]; do sleep 0.05; done"


def test_a_full_disk_queues_nothing_and_says_so(queue: Queue) -> None:
    queue.submit("-H", "true")
    limited = f'ulimit -f 0; exec "{sys.executable}" -c "{JDIST}" submit -H true'
    done = subprocess.run(
        ["sh", "-c", limited], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "cannot be used" in done.stderr
    assert len(queue.run("queue", "-o", "id").splitlines()) == 2
    full = queue.ended(queue.submit("-c", "0", "-o", "/dev/full", "sh", "-c", "echo text"))
    assert full["state"] == "FAILED"


def install(copy: Path) -> None:
    """Copy the package."""
    source = Path(jupyter_dist_server.__file__).parent
    ignored = shutil.ignore_patterns("labextension", "__pycache__")
    shutil.copytree(source, copy / "jupyter_dist_server", ignore=ignored)


def submit_from(copy: Path, *job: str) -> None:
    env = os.environ | {"PYTHONPATH": str(copy)}
    command = [sys.executable, "-c", JDIST, "submit", "-c", "0", *job]
    subprocess.run(command, env=env, cwd=copy.parent, check=True, timeout=PATIENCE)


def test_a_job_goes_on_when_the_package_is_removed(queue: Queue) -> None:
    copy = queue.folder / "package"
    install(copy)
    submit_from(copy, "sh", "-c", LOOP)
    wait_for(lambda: queue.show("1")["state"] == "RUNNING" and queue.output("1"), "its output")
    shutil.rmtree(copy)
    (queue.folder / "go").touch()
    assert queue.ended("1")["state"] == "COMPLETED"


def test_the_next_dispatcher_is_of_the_version_that_was_installed(queue: Queue) -> None:
    copy = queue.folder / "package"
    install(copy)
    submit_from(copy, "sh", "-c", LOOP)
    wait_for(lambda: queue.show("1")["state"] == "RUNNING" and queue.output("1"), "its output")
    wait_for(lambda: not queue.processes("dist-dispatcher"), "the end of the old dispatcher")
    shutil.rmtree(copy)
    install(copy)
    process = copy / "jupyter_dist_server" / "jobs" / "dispatcher_process.py"
    future = "from __future__ import annotations\n"
    marked = f"{future}open({str(queue.folder / 'new')!r}, 'w')\n"
    process.write_text(process.read_text().replace(future, marked))
    submit_from(copy, "true")
    assert queue.ended("2")["state"] == "COMPLETED" and (queue.folder / "new").exists()
    (queue.folder / "go").touch()
    assert queue.ended("1")["state"] == "COMPLETED"


def test_only_what_has_not_started_gets_other_gpus(queue: Queue) -> None:
    job = queue.submit("-c", "0", "sh", "-c", LOOP)
    wait_for(lambda: queue.show(job)["state"] == "RUNNING", "its start")
    said = queue.run("update", "--gpus", "0", "-t", "10", "-J", "new", job)
    assert said == f"Job {job} is RUNNING: its number of GPUs was not changed.\n"
    found = queue.show(job)
    assert (found["gpus"], found["limit"], found["name"]) == (0, 600.0, "new")
    waits = queue.submit("-H", "true")
    said = queue.run("update", "--gpus", "2", waits, code=2)
    assert said == "jdist: A job cannot have 2 GPUs: No NVIDIA GPU found.\n"
    (queue.folder / "go").touch()
    queue.ended(job)


def test_a_change_that_cannot_be_made_is_said_and_fails(queue: Queue) -> None:
    job = queue.submit("-c", "0", "true")
    queue.ended(job)
    said = queue.run("update", "-t", "10", "--priority", "5", job, code=2).splitlines()
    assert said == [
        f"Job {job} is COMPLETED: its time limit was not changed.",
        f"Job {job} is COMPLETED: its priority was not changed.",
    ]
    waits = queue.submit("-H", "true")
    said = queue.run("update", "--priority", "5", job, waits)
    assert said == f"Job {job} is COMPLETED: its priority was not changed.\n"
    assert queue.show(waits)["priority"] == 5


def test_a_limit_is_extended_while_the_job_runs(queue: Queue) -> None:
    job = queue.submit("-c", "0", "-t", "0:20", "sh", "-c", LOOP)
    queue.until(job, "RUNNING")
    queue.run("update", "-t", "5", job)
    until = queue.show(job)["started"] + 20.5
    wait_for(lambda: time.time() > until, "its former limit")
    assert queue.show(job)["state"] == "RUNNING"
    (queue.folder / "go").touch()
    assert queue.ended(job)["state"] == "COMPLETED"


def test_dependents_wait_again_when_the_parent_is_requeued(queue: Queue) -> None:
    parent = queue.submit("-c", "0", "sh", "-c", "[ $JDIST_ATTEMPT = 2 ]")
    queue.ended(parent)
    child = queue.submit("-c", "0", "-d", f"afterok:{parent}", "true")
    wait_for(lambda: queue.show(child)["reason"] == "DependencyNeverSatisfied", "the reason")
    queue.run("requeue", parent)
    assert queue.ended(child)["state"] == "COMPLETED"


def test_tasks_of_one_array_are_no_others_for_a_singleton() -> None:
    spec = Spec(argv=["true"], cwd="/", singleton=True)
    tasks = [
        Job(id=10 * array + task, array=array, task=task, params={}, name="a", spec=spec)
        for array in (1, 2)
        for task in (1, 2)
    ]
    other = Job(id=30, params={}, name="b", spec=spec)
    assert list(obstacles([*tasks, other], [], {}, 0.0)) == [21, 22]
    assert list(obstacles(tasks[2:], [tasks[1]], {}, 0.0)) == [21, 22]


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_time_that_a_change_of_clocks_leaves_out(berlin: None) -> None:
    evening = time.mktime((2026, 3, 28, 22, 0, 0, 0, 0, -1))
    begins = read_moment("02:30", evening)
    assert time.strftime("%d %H:%M", time.localtime(begins)) == "29 03:30"
    assert read_moment("2026-03-29T02:30", evening) == begins


def test_a_policy_of_the_machine(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    path = queue.folder / "policy.toml"
    path.write_text('max_time = "2:00:00"\ndefault_time = "30" # minutes\n')
    monkeypatch.setenv(PATH, str(path))
    said = queue.run("submit", "-t", "3:00:00", "true", code=2)
    assert "this machine allows 2:00:00 at most" in said
    queue.run("submit", "-t", "UNLIMITED", "true", code=2)
    job = queue.submit("-H", "true")
    assert queue.show(job)["limit"] == 1800.0
    queue.run("update", "-t", "3:00:00", job, code=2)
    queue.run("update", "-t", "1:00:00", job)
    assert queue.show(job)["limit"] == 3600.0


def test_a_file_that_takes_the_place_of_the_one_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("first\n")
    log = LogReader(str(path))
    assert (piece := log.read()) and (piece.data, piece.replaced) == (b"first\n", False)
    (tmp_path / "new").write_text("a longer second\n")
    (tmp_path / "new").rename(path)
    assert (piece := log.read()) and (piece.data, piece.replaced) == (b"a longer second\n", True)
    path.write_text("cut\n")
    assert (piece := log.read()) and (piece.data, piece.replaced) == (b"cut\n", True)
    path.unlink()
    assert log.read() is None and log.is_gone
    path.write_text("a new one, perhaps with the same number\n")
    assert (piece := log.read()) and piece.replaced and piece.start == 0 and not log.is_gone


def test_what_a_filesystem_calls_a_hole_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As was seen of one that had not written it yet."""
    path = tmp_path / "log"
    path.write_text("first\n")
    seek = os.lseek

    def no_data(file: int, place: int, how: int) -> int:
        if how == os.SEEK_DATA:
            raise OSError(errno.ENXIO, "no data")
        return seek(file, place, how)

    monkeypatch.setattr(os, "lseek", no_data)
    log = LogReader(str(path))
    assert (piece := log.read()) and piece.data == b"first\n"
    assert (piece := log.read()) and piece.data == b""


def test_following_says_that_the_output_was_deleted_and_shows_a_new_file(queue: Queue) -> None:
    job = queue.submit("-c", "0", "sh", "-c", LOOP)
    wait_for(lambda: queue.show(job)["state"] == "RUNNING" and queue.output(job), "its output")
    path = queue.folder / f"jdist-{job}.out"
    with subprocess.Popen(
        [sys.executable, "-c", JDIST, "logs", "-f", "--raw", job],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout and following.stderr
        assert following.stdout.readline() == "up\n"
        path.unlink()
        said = following.stderr.readline()
        assert said.startswith(f"jdist: {path} was deleted, so that output of job {job} is lost.")
        path.write_text("by hand\n")
        assert following.stdout.readline() == "by hand\n"
        assert following.stderr.readline() == f"jdist: {path} was replaced; this is the new file.\n"
        (queue.folder / "go").touch()
        assert following.wait(PATIENCE) == 0


def test_progress_bars_are_folded_and_a_line_without_an_end_is_not_kept() -> None:
    pieces = [b"1%\r2", b"%\r3%", b"\rdone\nnext\r\n", b"x" * (2 * PIECE), b"y" * PIECE]
    folded = list(fold(pieces))
    assert b"".join(folded) == b"done\nnext\n" + b"x" * (2 * PIECE) + b"y" * PIECE
    assert max(map(len, folded)) <= 2 * PIECE


STARTER = """
import threading
from jupyter_dist_server.jobs.start_dispatcher import ensure
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

store = Store(store_folder())
print("ready", flush=True)
input()
ensure(store)
print(sum(one.name == "jupyter-dist-reaper" for one in threading.enumerate()), flush=True)
input()
"""


def test_of_dispatchers_that_are_started_at_once_one_remains(queue: Queue) -> None:
    queue.submit("--begin", "now+1hour", "-c", "0", "true")
    wait_for(lambda: queue.processes("dist-zygote"), "the first dispatcher")
    for process in queue.processes():
        with suppress(psutil.NoSuchProcess):  # a zygote ends with its dispatcher
            process.kill()
    wait_for(lambda: not queue.processes(), "the end of all")
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        for _ in range(6)
    ]
    with ExitStack() as stack:
        for starter in starters:
            stack.enter_context(starter)
            assert starter.stdout and starter.stdout.readline() == "ready\n"
        for starter in starters:
            assert starter.stdin
            starter.stdin.write("\n")
        started = [int(starter.stdout.readline()) for starter in starters if starter.stdout]
        assert sorted(started) == [0] * 5 + [1], "the others leave it to the first"
        assert len(wait_for(lambda: queue.processes("dist-dispatcher"), "the dispatcher")) == 1
        for starter in starters:
            starter.kill()


def test_a_large_environment_is_kept_once_and_never_shown(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        monkeypatch.setenv(f"LARGE_{number}", f"s3cret{number}" + "x" * 100_000)
    code = "echo ${#LARGE_0} ${#LARGE_9}"
    jobs = [queue.submit("-c", "0", "sh", "-c", code) for _ in range(2)]
    for job in jobs:
        assert queue.ended(job)["state"] == "COMPLETED"
        assert queue.output(job) == "100007 100007\n"
    with closing(Store(store_folder())) as store:
        ((rows, size),) = store.read("SELECT count(*), sum(length(body)) FROM environments")
    assert rows == 1 and size > 1_000_000
    for command in (["show", "--json", *jobs], ["history", "--json"], ["queue", "--json"]):
        assert "s3cret" not in queue.run(*command)


def test_an_environment_that_no_program_can_be_given(queue: Queue) -> None:
    large = "LARGE=" + "x" * 200_000  # Linux: a variable has 128 KiB at most
    job = queue.ended(queue.submit("-c", "0", "--env", large, "true"))
    assert (job["state"], job["reason"]) == ("FAILED", "JobLaunchFailure")
    assert "Argument list too long" in job["detail"]


def test_a_dependency_on_a_job_that_is_not_ones_own(queue: Queue) -> None:
    ended = queue.submit("-c", "0", "true")
    queue.ended(ended)
    assert queue.ended(queue.submit("-c", "0", "-d", f"afterok:{ended}", "true"))["started"]
    newest = int(ended) + 1
    for unknown in (newest + 1, newest + 2):  # its own id, and one of somebody else
        said = queue.run("submit", "-d", f"afterok:{unknown}", "true", code=2)
        assert f"There is no job {unknown}." in said and "another user's job, wait" in said
