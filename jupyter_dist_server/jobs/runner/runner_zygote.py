"""Forks runners: a process that has imported what they need, and has no database open.

SQLite must not be carried across a fork (https://www.sqlite.org/howtocorrupt.html), so the
dispatcher forks this one before it opens the store.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import NoReturn

import msgspec

from ...common.files.inherited_lease import InheritedLease
from ...common.files.own_files import own
from ...common.files.past_use import note_use
from ...common.patience import patience
from ...common.processes.process_ref import adopt_descendants, boot_id, call_ourselves
from ...common.protocol.agents.zygote_messages import StartRunner, decode_start_runner
from ..job_command import remove_folders
from ..notification import notify
from ..start_dispatcher import ensure
from ..store.states import CONFIGURING, FAILURES
from ..store.store import Store
from .runner import Runner

_PDEATHSIG = 1
for _name in ("gpus.cuda_visible_devices", "jobs.gpu_list"):
    import_module(f"jupyter_dist_server.{_name}")  # or each runner would, before its job starts


class RunnerZygote:
    """The dispatcher's end: forks the zygote, and has it fork runners."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        dispatcher = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            self._socket.close()
            _end_with(dispatcher)
            _serve(theirs)
            os._exit(0)
        theirs.close()
        self._socket.settimeout(patience.busy_answer)
        self._stopped_since: float | None = None

    def fileno(self) -> int:
        """Return a descriptor that becomes readable once the zygote has ended."""
        return self._socket.fileno()

    def run(self, folder: Path, job: int, launch: str, descriptors: list[int]) -> None:
        """Have a job run, with the descriptors of its lease.

        `OSError` if the zygote has ended, or no longer reads.
        """
        order = msgspec.json.encode(StartRunner(str(folder), job, launch))
        socket.send_fds(self._socket, [order], descriptors)

    def end_if_stopped(self) -> float:
        """Kill the zygote if it stays stopped (SIGSTOP); return when to look again, in seconds.

        That frees the locks of jobs that it has not forked a runner for, so that these wait again.
        """
        now, told = time.monotonic(), None
        with contextlib.suppress(ChildProcessError):  # it has ended
            told = os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT)
        if told is None:
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = now
        elif now - self._stopped_since >= patience.busy_answer:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        return patience.busy_answer


def _end_with(dispatcher: int) -> None:
    """End when the dispatcher does, even while stopped: that drops unread orders.

    Their locks are free then, so that the jobs wait again. A fork clears this: runners go on. It is
    the end of the thread that forks that counts: the dispatcher's main thread, which ends with it.
    """
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != dispatcher:  # it has ended before that
        os._exit(0)


def _serve(orders: socket.socket) -> None:
    call_ourselves("dist-zygote")
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for runners
    gc.freeze()  # keeps the collector from touching, and so copying, pages shared with runners
    gc.enable()
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, 65536, 1024)  # at most
        if not message:
            return
        try:
            order = decode_start_runner(message)
        except ValueError as error:  # the runners of other jobs are still to be started
            print("The zygote was asked for something unknown:", error, file=sys.stderr, flush=True)
        else:
            if not os.fork():
                orders.close()
                _become_runner(order, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _become_runner(order: StartRunner, descriptors: list[int]) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        _run_job(Path(order.folder), order.job, order.launch, descriptors)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)  # whatever happens, it must not go on as a second zygote


def _run_job(folder: Path, id: int, launch: str, descriptors: list[int]) -> None:
    call_ourselves("dist-runner")
    adopt_descendants()
    lock = own(descriptors[0])  # tells that the job has a runner, until this process ends
    lease = InheritedLease(descriptors[1:]) if descriptors[1:] else None
    store = Store(folder)
    job = store.get(id)
    ended, asked_to_end, begun = None, False, time.time()
    if (job.state, job.launch) == (CONFIGURING, launch) and job.boot == boot_id():
        runner = Runner(store, job, lease)
        runner.run()
        ended, asked_to_end = store.get(id), runner.asked_to_end
    if lease:
        lease.close()
    remove_folders(job, store)
    lock.close()
    if not asked_to_end:  # a shutdown: nothing is to start now
        ensure(store)
    if ended and job.gpu_uuids:
        idle = sum(one.idle_share for one in store.usage(job).values()) * (time.time() - begun)
        has_failed = ended.state in FAILURES or not ended.is_ended  # it is to start again
        note_use(len(job.gpu_uuids), begun, idle, has_failed)
    if ended and ended.is_ended:
        notify(store, ended)
    store.close()
