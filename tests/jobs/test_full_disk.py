"""A disk that is full while jobs run, and one that cannot be written any more."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.store.store_folder import store_folder, store_name

from ..waiting import wait_for
from .queue_driver import Queue

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this container may not mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small(queue: Queue) -> Iterator[Queue]:
    """A queue whose store is on a disk of its own."""
    with small_disk(queue.folder / "jupyter-dist"):
        yield queue
        queue.end()


def fill(folder: Path) -> Path:
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
    return path


def test_a_job_that_ends_while_the_disk_is_full(small: Queue) -> None:
    job = small.submit("-c", "0", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done; echo done")
    small.until(job, "RUNNING")
    filler = fill(store_folder())
    assert "cannot be used" in small.run("submit", "-H", "true", code=2)
    (small.folder / "go").touch()
    wait_for(lambda: "done" in small.output(job), "its end")
    filler.unlink()
    assert small.ended(job)["state"] == "COMPLETED", "the runner writes it once there is room"
    assert small.output(job) == "done\n"
    assert len(small.run("queue", "-o", "id").splitlines()) == 1, "what was refused is not there"


def test_a_job_whose_output_fills_the_disk_is_told_so(queue: Queue) -> None:
    with small_disk(queue.folder / "disk") as disk:
        job = queue.ended(queue.submit("-c", "0", "-o", "disk/log", "yes"))
        assert job["state"] == "FAILED"
        told = f"The disk of {disk / 'log'} was full: output may be missing."
        assert job["detail"].endswith(told) and told in queue.run("show", str(job["id"]))
    calm = queue.ended(queue.submit("-c", "0", "sh", "-c", "exit 1"))
    assert calm["detail"] == "It ended with exit code 1."


def test_a_limit_is_kept_while_the_disk_is_full(small: Queue) -> None:
    job = small.submit("-c", "0", "-t", "0:02", "sleep", "1000")
    small.until(job, "RUNNING")
    (process,) = small.processes("sleep")
    filler = fill(store_folder())
    wait_for(lambda: not process.is_running() or process.status() == "zombie", "its end")
    filler.unlink()
    assert small.ended(job)["state"] == "TIMEOUT"


def test_a_runner_that_is_asked_to_end_leaves_the_end_in_a_file(small: Queue) -> None:
    """As at a shutdown of the machine, which does not wait until there is room."""
    job = small.submit("-c", "0", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    small.until(job, "RUNNING")
    (runner,) = small.processes("dist-runner")
    filler = fill(store_folder())
    (small.folder / "go").touch()
    wait_for(lambda: not runner.children(), "its end, which cannot be written")
    runner.terminate()
    wait_for(lambda: not runner.is_running(), "the runner's end")
    (left,) = Path("/var/tmp").glob(f"jdist-*-{store_name(store_folder())}-{job}.1.exit.json")
    filler.unlink()
    assert small.ended(job)["state"] == "COMPLETED"
    assert not left.exists()


def test_nothing_is_queued_where_nothing_can_be_written(small: Queue) -> None:
    small.submit("-H", "true")
    disk = str(small.folder / "jupyter-dist")
    wait_for(lambda: not small.processes("dist-dispatcher"), "the dispatcher's end")
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert "cannot be used" in small.run("submit", "-H", "true", code=2)
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert len(small.run("queue", "-o", "id").splitlines()) == 2
