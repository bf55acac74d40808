"""A damaged file of the queue: the copy takes its place, and nothing runs a second time."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from jupyter_dist_server.jobs.store.job import Job, Spec
from jupyter_dist_server.jobs.store.states import PENDING
from jupyter_dist_server.jobs.store.store import Store
from jupyter_dist_server.jobs.store.store_folder import store_folder

from ..waiting import wait_for
from .queue_driver import Queue

JOB = Job(params={}, name="a", spec=Spec(argv=["true"], cwd="/"))


def damage(folder: Path) -> None:
    for path in folder.glob("queue.db-*"):
        path.unlink()
    (folder / "queue.db").write_bytes(b"nonsense" * 1000)


def test_jobs_that_run_are_found_and_others_are_held(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    loop = "while [ ! -e go ]; do sleep 0.05; done"
    runs = queue.submit("-c", "0", "sh", "-c", loop)
    queue.until(runs, "RUNNING")
    waits = queue.submit("-c", "0", "-d", f"afterok:{runs}", "true")
    ended = queue.submit("-c", "0", "touch", "ran")
    queue.ended(ended)
    folder = store_folder()
    for process in queue.processes("dist-dispatcher") + queue.processes("dist-zygote"):
        with suppress(psutil.NoSuchProcess):  # a zygote ends with its dispatcher
            process.kill()
    store = Store(folder)
    (folder / "queue.db.copy").unlink(missing_ok=True)
    store.keep_copy()
    store.close()
    late = queue.submit("-c", "0", "true")
    queue.ended(late)
    damage(folder)

    with caplog.at_level(logging.WARNING):
        found = queue.show(runs)
    assert len([one for one in caplog.messages if "was damaged" in one]) == 1
    assert (found["state"], found["attempt"]) == ("RUNNING", 1)
    assert queue.show(waits)["held"] and "it may have run" in queue.show(waits)["detail"]
    assert queue.show(ended)["state"] == "COMPLETED"
    assert len(list(folder.glob("queue.db.damaged-*"))) == 1
    assert int(queue.submit("-H", "true")) > int(late), "no id is used twice"
    (queue.folder / "go").touch()
    assert queue.ended(runs)["state"] == "COMPLETED", "its runner writes to the new file"
    queue.run("release", waits)
    assert queue.ended(waits)["state"] == "COMPLETED"


def test_damage_that_is_found_later_is_mended_by_the_next(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.submit([JOB] * 500, "many")
    store.keep_copy()
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = os.stat(tmp_path / "queue.db").st_size
    store.close()
    with (tmp_path / "queue.db").open("r+b") as file:
        file.seek(4096 * 2)
        file.write(b"\xff" * (size - 4096 * 2))
    broken = Store(tmp_path)
    with pytest.raises(Exception, match="cannot be used"):
        broken.select()
    broken.close()
    again = Store(tmp_path)
    assert len(again.select(f"state = '{PENDING}' AND held")) == 500
    again.close()


def test_a_copy_is_made_once_a_day_and_never_of_a_damaged_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    copy = tmp_path / "queue.db.copy"
    store.keep_copy()
    made = copy.stat().st_mtime_ns
    store.keep_copy()
    assert copy.stat().st_mtime_ns == made
    os.utime(copy, (0, 0))
    store.keep_copy()
    assert copy.stat().st_mtime_ns >= made
    assert copy.stat().st_mode & 0o77 == 0
    store.close()


def test_a_queue_is_used_while_it_is_restored(queue: Queue) -> None:
    """Who has the old file open writes into the new one."""
    store = Store(store_folder())
    store.submit([JOB], "one")
    store.keep_copy()
    damage(store.folder)
    wait_for(lambda: queue.run("queue", "--json"), "the restored queue")
    (id,) = store.submit([JOB], "two")
    other = Store(store.folder)
    assert other.get(id).state == PENDING
    other.close()
    store.close()
