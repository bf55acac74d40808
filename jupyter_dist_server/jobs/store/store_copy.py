"""A daily copy of the queue's file, which replaces the file if that is damaged.

What has happened since the copy was made is unknown then. So no job of the copy that had not ended
is started by itself: it may have run. Jobs that run now are found by their processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ...common.processes.process_ref import ProcessRef
from ..variables import GPUS, JOB
from .states import ENDED, NODE_FAIL, PENDING, RUNNING

if TYPE_CHECKING:
    import psutil

_COPY = "queue.db.copy"
_RUNNER = "dist-runner"


def keep_copy(folder: Path, db: sqlite3.Connection) -> None:
    """Copy the file, unless there is a copy of today."""
    copy, fresh = folder / _COPY, folder / f"{_COPY}.{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        if 0 <= time.time() - copy.stat().st_mtime < 86400.0:
            return
    try:
        os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT, 0o600))
        with contextlib.closing(sqlite3.connect(fresh)) as target:
            db.backup(target)
            check(target)
        fresh.rename(copy)
    finally:
        fresh.unlink(missing_ok=True)


def is_damaged(error: Exception) -> bool:
    """Tell whether SQLite found nonsense in the file: all else has a class of its own."""
    return type(error) is sqlite3.DatabaseError


def check(db: sqlite3.Connection) -> None:
    """Look through the whole file; `sqlite3.DatabaseError` if it is damaged."""
    (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(found)


def restore(folder: Path) -> str:
    """Replace a damaged file by the copy; return a sentence on it, empty without a copy.

    The damaged file is kept. The caller has the lock of writers.
    """
    path, copy = folder / "queue.db", folder / _COPY
    if not copy.exists():
        return ""
    aside = folder / f"queue.db.damaged-{time.time_ns()}"
    made = time.strftime("%F %H:%M", time.localtime(copy.stat().st_mtime))
    fresh = folder / f"queue.db.{os.getpid()}"
    fresh.write_bytes(copy.read_bytes())
    fresh.chmod(0o600)
    with contextlib.closing(sqlite3.connect(fresh)) as db, db:
        _bring_up_to_date(folder, db, made)
    os.link(path, aside)
    for part in ("-wal", "-shm"):  # SQLite would add them to the copy
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{part}").rename(f"{aside}{part}")
    fresh.rename(path)
    return (
        f"The file of the queue was damaged and is now {aside}; the queue is as it was on {made}. "
        "Jobs that waited then are held, as they may have run."
    )


def _bring_up_to_date(folder: Path, db: sqlite3.Connection, made: str) -> None:
    what = f"The file of the queue was damaged, and restored from a copy of {made}"
    marks = ", ".join("?" * (len(ENDED) + 1))
    db.execute(
        f"UPDATE jobs SET state = ?, detail = ?, ended = ? WHERE state NOT IN ({marks})",
        (NODE_FAIL, f"{what}: how it ended is not known.", time.time(), *ENDED, PENDING),
    )
    db.execute(
        "UPDATE jobs SET held = 1, reason = 'JobHeldUser', detail = ? WHERE state = ?",
        (f"{what}: it may have run. “jdist release” starts it.", PENDING),
    )
    for id, (process, runner) in _running(folder).items():
        environment, reference = process.environ(), ProcessRef.of(runner.pid)
        gpus = environment.get(GPUS, "").split(",")
        db.execute(
            "UPDATE jobs SET state = ?, reason = 'None', detail = '', held = 0, ended = NULL, "
            "launch = ?, attempt = ?, gpu_uuids = ?, started = ?, runner_pid = ?, "
            "runner_start = ?, boot = ? WHERE id = ?",
            (
                RUNNING,
                environment[JOB].partition(".")[2],
                int(environment.get("JDIST_ATTEMPT", 1)),
                json.dumps([uuid for uuid in gpus if uuid]),
                process.create_time(),
                reference.pid,
                reference.start_ticks,
                reference.boot,
                id,
            ),
        )
    # Ids are not used again: each job that was started has left a file of this name.
    ids = [int(file.stem) for file in (folder / "running").glob("*.lock") if file.stem.isdecimal()]
    db.execute(
        "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'jobs'", (max(ids, default=0),)
    )


def _running(folder: Path) -> dict[int, tuple[psutil.Process, psutil.Process]]:
    """Return a process of each running job, and its runner, which has the job's file open."""
    import psutil

    found: dict[int, tuple[psutil.Process, psutil.Process]] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            id = process.environ().get(JOB, "").partition(".")[0]
            lock = str(folder / "running" / f"{id}.lock")
            for parent in process.parents() if id.isdecimal() and int(id) not in found else ():
                if parent.name() == _RUNNER and lock in {file.path for file in parent.open_files()}:
                    found[int(id)] = process, parent
    return found
