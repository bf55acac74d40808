"""The file of a user's jobs: its tables, the steps from older formats, and transactions.

Writers take a lock of their own: while they wait for SQLite's, they look ever more rarely
(https://www.sqlite.org/c3ref/busy_timeout.html).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...common.errors import DistError
from ...common.patience import patience
from ...common.processes.process_ref import ProcessRef
from .store_copy import check, is_damaged, keep_copy, restore

_QUEUE = """
CREATE TABLE specs (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE environments (hash TEXT PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT, array INTEGER, task INTEGER, params TEXT NOT NULL,
  name TEXT NOT NULL, spec INTEGER NOT NULL REFERENCES specs, state TEXT NOT NULL,
  reason TEXT NOT NULL, detail TEXT NOT NULL, priority INTEGER NOT NULL, queued REAL NOT NULL,
  begin REAL, held INTEGER NOT NULL, gpus INTEGER NOT NULL, gpu_ids TEXT NOT NULL, share INTEGER,
  cpus INTEGER NOT NULL, memory INTEGER NOT NULL, "limit" REAL, attempt INTEGER NOT NULL,
  launch TEXT, gpu_uuids TEXT NOT NULL, runner_pid INTEGER, runner_start INTEGER, boot TEXT,
  submitted REAL NOT NULL, started REAL, ends_by REAL, ended REAL, exit_code INTEGER,
  exit_signal INTEGER, cancel_at REAL, kill INTEGER NOT NULL
);
CREATE INDEX pending ON jobs (priority DESC, queued, id) WHERE state = 'PENDING';
CREATE INDEX active ON jobs (id) WHERE state IN ('CONFIGURING', 'RUNNING', 'COMPLETING');
CREATE INDEX names ON jobs (name);
CREATE TABLE submissions (token TEXT PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE dependencies (
  job INTEGER NOT NULL, upon INTEGER NOT NULL, type TEXT NOT NULL,
  PRIMARY KEY (job, upon, type)
) WITHOUT ROWID;
CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, at REAL NOT NULL, was TEXT,
  state TEXT NOT NULL, reason TEXT NOT NULL
);
"""
_ATTEMPTS = """
CREATE TABLE attempts (
  job INTEGER NOT NULL, attempt INTEGER NOT NULL, state TEXT, reason TEXT, started REAL, ended REAL,
  exit_code INTEGER, exit_signal INTEGER, gpus INTEGER, usage TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (job, attempt)
) WITHOUT ROWID;
"""
_ANY = ""
"""Types of dependencies that begin with ``?``, which older versions take for ``afternotok``."""
_SECRETS = ""
"""Values of secrets are in files of their own, without which older versions would start jobs."""
_STEPS = (_QUEUE, _ATTEMPTS, _ANY, _SECRETS)
_SUSPECTED = "suspected"
"""A file that exists after nonsense was found in the queue: who opens that next checks it."""
VERSION = len(_STEPS)
"""Of the format; a step leads to each."""


class StoreFile:
    """The SQLite file, open; made if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.watched = folder / "running"
        """Where files change when jobs do."""
        self.was_older = False
        """Whether we have changed the format of jobs that an older version has queued."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.watched.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._lock = os.open(folder / "write.lock", flags, 0o600)
            self._open_or_restore()
            self._migrate(folder / "queue.db")
        except (OSError, sqlite3.Error) as error:
            raise unusable(folder, error) from error

    def _open_or_restore(self) -> None:
        try:
            self._open()
            return
        except sqlite3.DatabaseError as error:
            if not is_damaged(error):
                raise
        self._take_lock()
        try:
            self._open()  # or somebody was faster
        except sqlite3.DatabaseError as error:
            if not (is_damaged(error) and (told := restore(self.folder))):
                raise
            import logging  # not above: to import it takes long, and this is rare

            logging.getLogger(__name__).warning(told)
            self._open()
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _open(self) -> None:
        path, suspected = self.folder / "queue.db", self.folder / _SUSPECTED
        if not path.exists():
            _make(path)
        self._number = path.stat().st_ino
        self._db = sqlite3.connect(path, isolation_level=None, timeout=patience.program)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._version()
        if suspected.exists():
            check(self._db)
            suspected.unlink(missing_ok=True)

    def keep_copy(self) -> None:
        """Copy the file, unless that was done within a day."""
        try:
            keep_copy(self.folder, self._db)
        except (OSError, sqlite3.Error) as error:
            raise unusable(self.folder, error) from error

    def _migrate(self, path: Path) -> None:
        if (found := self._version()) > VERSION:
            raise DistError(
                "queue_newer",
                f"{path} was written by a newer version of Jupyter Dist: format {found}, "
                f"and this one knows {VERSION}.",
                "Use the newer version for the queue, or end its jobs there first.",
            )
        if found < VERSION:
            self.was_older = found > 0
            with self.writing(wakes=False):
                for step in _STEPS[self._version() :]:  # or somebody was faster
                    for statement in filter(str.strip, step.split(";\n")):
                        self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {VERSION}")

    def is_newer(self) -> bool:
        """Tell whether a newer version has changed the format since we opened the file."""
        return bool(self.read("PRAGMA user_version")[0][0] > VERSION)

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()
        os.close(self._lock)

    def read(self, query: str, *values: Any) -> list[sqlite3.Row]:
        """Return the rows of a query, from the restored file if this one was damaged."""
        try:
            if self._was_restored() and not self._db.in_transaction:
                self._db.close()
                self._open()
            return self._db.execute(query, values).fetchall()
        except (OSError, sqlite3.Error) as error:
            raise unusable(self.folder, error) from error

    @contextlib.contextmanager
    def at_one_time(self) -> Iterator[None]:
        """Read several times as if at one time."""
        is_part_of_more = self._db.in_transaction
        if is_part_of_more:
            yield
            return
        self.read("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _take_lock(self) -> None:
        until = time.monotonic() + patience.program
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > until:
                    raise _locked(self._lock) from None
            time.sleep(0.005)  # flock knows no limit

    def _was_restored(self) -> bool:
        return (self.folder / "queue.db").stat().st_ino != self._number

    @contextlib.contextmanager
    def writing(self, *, wakes: bool = True) -> Iterator[None]:
        """Make several changes, all of them or none, and wake the processes that watch."""
        is_part_of_more = self._db.in_transaction
        if is_part_of_more:
            yield
            return
        self._take_lock()
        try:
            if self._was_restored():
                self._db.close()
                self._open()
            before = self._db.total_changes
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
                wakes = wakes and self._db.total_changes > before
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        except (OSError, sqlite3.Error) as error:
            raise unusable(self.folder, error) from error
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        if wakes:
            self.changed()

    def changed(self) -> None:
        """Wake the processes that watch the folder."""
        with contextlib.suppress(OSError):  # a full disk: they look again later
            (self.watched / "changed").touch()


def _make(path: Path) -> None:
    """Make the file, for its owner only.

    Only SQLite opens it: closing it ends every lock that this process has on it
    (https://www.sqlite.org/howtocorrupt.html, 2.2). It gets its mode before others see it: of two
    that set that at once, SQLite refuses one.
    """
    name = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with contextlib.closing(sqlite3.connect(name)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    with contextlib.suppress(FileExistsError):
        os.link(name, path)
    os.unlink(name)


def _locked(lock: int) -> DistError:
    """Return what to raise if a process keeps all others from writing: it was stopped, say."""
    import psutil  # not above: each `jdist` would import this, and asyncio

    from ...common.processes.why_silent import PHRASES, why_silent_blocking

    pid, inode = None, str(os.fstat(lock).st_ino)
    with contextlib.suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            _, kind, _, _, holder, file, *_ = line.split()  # or, of one that waits, not so
            if kind == "FLOCK" and file.rpartition(":")[2] == inode:
                pid = holder
    kept = f"has kept the queue locked for {patience.program:g} s"
    if pid is None:
        return DistError("queue_locked", f"Another process {kept}.")
    with contextlib.suppress(psutil.NoSuchProcess):
        kept += f": it is {PHRASES[why_silent_blocking(ProcessRef.of(int(pid)))]}"
    return DistError(
        "queue_locked",
        f"Process {pid} {kept}.",
        f"If it is stopped, run kill -CONT {pid}; or kill -KILL {pid}, which loses no job.",
    )


def unusable(folder: Path, error: Exception) -> DistError:
    """Return what to raise if SQLite or the disk fails."""
    if is_damaged(error):
        with contextlib.suppress(OSError):
            (folder / _SUSPECTED).touch()
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return DistError(
        "queue_unusable",
        f"The queue in {folder} cannot be used: {reason}.",
        "Check the disk's free space and the folder's owner; jdist doctor says more.",
    )
