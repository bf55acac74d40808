"""Starts the dispatcher of a queue, and the reader of its GPUs: one of each at most.

`jdist` imports nothing else before it starts a dispatcher early. The dispatcher's lock is an open
file description lock: a process that only looks need not lock anything, and so is in no other's
way. See https://man7.org/linux/man-pages/man2/fcntl_locking.2.html.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.files.own_files import own
from ..common.processes.python_command import python_command
from .variables import DISPATCHER, JOB

if TYPE_CHECKING:
    from ..common.processes.process_ref import ProcessRef
    from .store.store import Store

_DISPATCHER = "jupyter_dist_server.jobs.dispatcher_process"
_USAGE_READER = "jupyter_dist_server.jobs.usage_reader"
_FLOCK = "hhqqi4x"
"""``struct flock``: type, whence, start, length, pid."""
_WANTED = struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0)


def ensure(store: Store, *, also_if: bool = False) -> None:
    """Start a dispatcher if jobs wait, or `also_if` one is needed, and none runs.

    It is given its lock, so that no second one starts while it imports.
    """
    if (store.is_idle() and not also_if) or _asks_runner(store):
        return
    lock = take_lock(store.folder)
    if lock is None and store.was_older:  # its dispatcher ends, once it has been woken
        store.was_older = False
        lock = own(_open_lock(store.folder))  # for which a new one waits
        store.changed()
    if lock:
        with lock:
            start_dispatcher(store.folder, lock)


def _asks_runner(store: Store) -> bool:
    """Have the runner of the job that we are in start it: what a job starts ends with the job."""
    id, _, launch = os.environ.get(JOB, "").partition(".")
    found = store.select("id = ? AND launch = ?", id, launch) if id.isdecimal() else []
    for job in found:
        job.poke()
    return bool(found)


def start_dispatcher(folder: Path, lock: io.FileIO, announced: int | None = None) -> None:
    """Start a dispatcher that is given its lock, or waits for it; see `Dispatcher`."""
    given = [lock.fileno()] + ([] if announced is None else [announced])
    arguments, env = [str(folder), *map(str, given)], os.environ | {DISPATCHER: "1"}
    log = folder / "dispatcher.log"
    start_in_background(_DISPATCHER, arguments, log, pass_fds=given, env=env)


def announce_job(folder: Path) -> None:
    """Start a dispatcher, if none runs, for a job that this process is about to submit.

    It imports what it needs while we do. It waits for a job until this process has ended.
    """
    if JOB in os.environ:  # the runner of that job starts it
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if lock := take_lock(folder):
        announced, _ = os.pipe2(os.O_CLOEXEC)  # the other end is closed when we end
        with lock:
            start_dispatcher(folder, lock, announced)
        os.close(announced)


def take_lock(folder: Path) -> io.FileIO | None:
    """Lock a folder for a dispatcher, ourselves or one to be started; `None` if there is one."""
    lock = own(_open_lock(folder))
    try:
        fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _WANTED)
    except (BlockingIOError, PermissionError):
        lock.close()
        return None
    return lock


def wait_for_lock(lock: io.FileIO) -> None:
    """Lock a file that may be locked already, by us or for us by the process that started us."""
    fcntl.fcntl(lock, fcntl.F_OFD_SETLKW, _WANTED)


def sign(lock: io.FileIO) -> None:
    """Write into the lock that this process is the dispatcher."""
    from ..common.processes.process_ref import ProcessRef

    us = ProcessRef.of(os.getpid())
    file = lock.fileno()
    os.ftruncate(file, os.pwrite(file, f"{us.pid} {us.start_ticks} {us.boot}".encode(), 0))


def find_dispatcher(folder: Path) -> ProcessRef | None:
    """Return the dispatcher of a folder, if one runs and has signed."""
    lock = _open_lock(folder)
    try:
        kind: int = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _WANTED))[0]
        if kind == fcntl.F_UNLCK:
            return None
        from ..common.processes.process_ref import ProcessRef

        with contextlib.suppress(ValueError):
            pid, start, boot = os.pread(lock, 256, 0).decode().split()
            return ProcessRef(int(pid), int(start), boot)
        return None
    finally:
        os.close(lock)


def _open_lock(folder: Path) -> int:
    return os.open(folder / "dispatcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def ensure_sampler(store: Store) -> None:
    """Start the process that reads GPUs, if a job with GPUs runs and no such process does."""
    if JOB in os.environ or not any(job.gpu_uuids for job in store.active()):
        return
    lock = take_sampler_lock(store.folder)
    if lock is not None:
        os.close(lock)
        start_in_background(_USAGE_READER, [str(store.folder)], store.folder / "dispatcher.log")


def take_sampler_lock(folder: Path) -> int | None:
    """Lock the file that the process keeps locked; `None` if it runs."""
    lock = os.open(folder / "sampler.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def start_in_background(
    module: str,
    arguments: Sequence[str],
    log: Path,
    *,
    pass_fds: Sequence[int] = (),
    env: Mapping[str, str] | None = None,
) -> None:
    """Start a module of ours in a session of its own; its output is appended to `log`."""
    import subprocess  # not above: most commands find all running that they need
    import threading

    with log.open("ab") as output:
        process = subprocess.Popen(
            [*python_command(sys.executable, module), *arguments],
            pass_fds=pass_fds,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            env=env,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, name="jupyter-dist-reaper", daemon=True).start()
