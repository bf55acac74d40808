"""A disk that is full while jobs run, and one that cannot be written any more."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jupyter_dist_server.jobs.store.store_folder import store_folder, store_name

from ..environment import lives
from ..waiting import wait_for
from .queue_driver import Queue

pytestmark = pytest.mark.root


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


def mounted(image: Path, folder: Path) -> str:
    """Mount a filesystem that an error makes read-only; return its device."""
    options = ["-o", "loop,errors=remount-ro"]
    if subprocess.run(["mount", *options, str(image), str(folder)], capture_output=True).returncode:
        pytest.skip("this container may not mount an image")
    found = ["findmnt", "--noheadings", "--output", "SOURCE", str(folder)]
    return subprocess.run(found, check=True, capture_output=True, text=True).stdout.strip()


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
    job = small.submit("-c", "0", "-t", "10", "sleep", "1000")
    (process,) = wait_for(lambda: small.processes("sleep"), "its process")
    small.run("update", "-t", "0:02", job)
    filler = fill(store_folder())
    wait_for(lambda: not lives(process), "its end")
    filler.unlink()
    assert small.ended(job)["state"] == "TIMEOUT"


def test_a_runner_that_is_asked_to_end_leaves_the_end_in_a_file(small: Queue) -> None:
    """As at a shutdown of the machine, which does not wait until there is room."""
    job = small.submit("-c", "0", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done")
    small.until(job, "RUNNING")
    wait_for(lambda: small.processes("sh"), "its process, which is the runner's copy at first")
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


def test_a_job_goes_on_when_an_error_makes_the_filesystem_read_only(queue: Queue) -> None:
    if not all(map(shutil.which, ("mkfs.ext4", "e2fsck", "findmnt"))):
        pytest.skip("needs e2fsprogs and util-linux")
    folder, image = queue.folder / "jupyter-dist", queue.folder / "image"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    device = mounted(image, folder)
    error = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
    try:
        if not os.access(error, os.W_OK):
            pytest.skip("this kernel pretends no error of ext4")
        code = "echo up; while [ ! -e go ]; do sleep 0.05; done; echo done"
        job = queue.submit("-c", "0", "sh", "-c", code)
        queue.until(job, "RUNNING")
        wait_for(lambda: "up" in queue.output(job), "its start")
        wait_for(lambda: not queue.processes("dist-dispatcher"), "the dispatcher's end")
        (runner,) = queue.processes("dist-runner")
        error.write_text("1")
        assert "cannot be used" in queue.run("submit", "-H", "true", code=2)
        (queue.folder / "go").touch()
        wait_for(lambda: not runner.children(), "the job's end")
        assert queue.output(job) == "up\ndone\n"
        runner.terminate()  # or it would try for a minute to write the end
        wait_for(lambda: not runner.is_running(), "the runner's end")
        name = store_name(store_folder())
        (left,) = Path("/var/tmp").glob(f"jdist-*-{name}-{job}.1.exit.json")
    finally:
        queue.end()
        subprocess.run(["umount", str(folder)], check=True)
    assert subprocess.run(["e2fsck", "-fy", str(image)], capture_output=True).returncode < 4
    mounted(image, folder)
    try:
        assert queue.show(job)["state"] == "COMPLETED"
        assert not left.exists()
        assert len(queue.run("queue", "-o", "id").splitlines()) == 1, "nothing else was queued"
    finally:
        queue.end()
        subprocess.run(["umount", str(folder)], check=True)
