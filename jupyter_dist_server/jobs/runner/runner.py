"""The runner of one job: holds its GPUs, starts it, ends it, and writes what became of it.

It outlives the dispatcher, the server and the process that submitted the job. The job's code starts
only after RUNNING is in the store, and ends with the runner, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import time
from typing import Any

from ...common.errors import DistError
from ...common.files.inherited_lease import InheritedLease
from ...common.patience import patience
from ...common.processes.control_groups import MemoryWatch
from ...common.processes.process_ref import ProcessRef, give_memory_back
from ..job_command import (
    evidence_folder,
    job_command,
    job_environment,
    log_paths,
    make_folders,
    profile_path,
    with_secrets,
)
from ..job_end import any_is_lost, leave_end, write_end
from ..start_dispatcher import ensure
from ..store.job import Job
from ..store.states import CANCELLED, COMPLETING, FAILED, NODE_FAIL, NOT_STARTED, RUNNING, TIMEOUT
from ..store.store import Store
from .descendants import Descendant, alive_after, descendants, names, send, to_warn
from .job_process import become_job
from .job_wait import LIMIT, WaitWatch
from .log_limit import LogLimit
from .outcome import other_gpus, outcome, unused_gpus
from .profile_watch import ProfileWatch


class Runner:
    """Runs one job, which is CONFIGURING; the lease has its GPUs and cores."""

    def __init__(self, store: Store, job: Job, lease: InheritedLease | None) -> None:
        self._store = store
        self.job = job
        self._lease = lease
        self._poll = select.poll()
        self._ended_by: str | None = None
        """The state that ending it ourselves leads to."""
        self._kill_at: float | None = None
        self._is_killed = False
        self._told = ""
        """The processes that the store says do not end."""
        self._signal_sent = False
        self._started = 0.0
        self._ends_at: float | None = None
        """By the monotonic clock: neither a step of the clock nor sleep counts."""
        self._memory = MemoryWatch()
        self._log_limits: list[LogLimit] = []
        self._waits: WaitWatch | None = None
        self._profiles: ProfileWatch | None = None
        self._begins: dict[str, int] = {}
        """The files of its output, and their sizes before this attempt."""
        self._wakeup, sender = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(sender, warn_on_full_buffer=False)
        self._poll.register(self._wakeup, select.POLLIN)
        if lease and (events := lease.fileno()) is not None:
            self._poll.register(events, select.POLLIN)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        self.asked_to_end = False
        """Whether SIGTERM has asked us to end, as at a shutdown of the machine."""

    def _on_signal(self, number: int, frame: object) -> None:
        if number == signal.SIGTERM:
            self.asked_to_end = True

    def run(self) -> None:
        """Run the job to its end."""
        try:
            child, release = self._fork()
        except (OSError, DistError) as error:
            self._finish(FAILED, "JobLaunchFailure", _first_line(error))
            return
        now, limit = time.time(), self.job.limit
        self._started = time.monotonic()
        self._ends_at = None if limit is None else self._started + limit
        us, ends_by = ProcessRef.of(os.getpid()), None if limit is None else now + limit
        runner = {"runner_pid": us.pid, "runner_start": us.start_ticks, "boot": us.boot}
        fields = {"reason": "None", "detail": "", "started": now, "ends_by": ends_by} | runner
        if not self._store.move(self.job, RUNNING, **fields):  # cancelled: its code has not run
            os.close(release)
            os.waitpid(child, 0)
            if self._store.get(self.job.id).cancel_at is not None:
                self._finish(CANCELLED, "None", NOT_STARTED)
            return
        self.job = self._store.get(self.job.id)
        os.write(release, b"!")
        os.close(release)
        give_memory_back()  # it only waits from now on, perhaps for days
        status = self._watch(child)
        if self._profiles:
            with contextlib.suppress(OSError):  # out of descriptors or processes
                self._profiles.end()
        self._end_leftovers()
        for log in self._log_limits:
            log.look()
        if refused := os.read(self._refused, 4096).decode(errors="replace"):
            self._finish(FAILED, "JobLaunchFailure", refused)
        else:
            self._finish(**self._outcome(os.waitstatus_to_exitcode(status)))

    def _fork(self) -> tuple[int, int]:
        """Fork the job's process; it waits for a byte, and ends if none comes."""
        command = job_command(with_secrets(self.job, self._store))
        environment = job_environment(self.job, self._store)
        make_folders(self.job, self._store)
        output, error = log_paths(self.job)
        if not os.path.isdir(self.job.spec.cwd):
            raise FileNotFoundError(2, "The folder does not exist", self.job.spec.cwd)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        if not self.job.spec.append and self.job.attempt == 1:
            flags |= os.O_TRUNC
        os.umask(self.job.spec.umask)
        out = os.open(output, flags, 0o666)
        err = out if error == output else os.open(error, flags, 0o666)
        self._begins = {output: os.fstat(out).st_size, error: os.fstat(err).st_size}
        self._log_limits = [LogLimit(path, self.job.spec.log_max) for path in self._begins]
        if self.job.spec.why:
            folder, most = evidence_folder(self.job, environment), environment.get(LIMIT, "")
            self._waits = WaitWatch(folder, error, self.job.label, most)
            if self.job.spec.profile_steps:
                self._profiles = ProfileWatch(folder, profile_path(self.job), error)
        waits, release = os.pipe2(os.O_CLOEXEC)
        self._refused, refusal = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if not child:
            os.close(release)
            become_job(waits, out, err, refusal, self.job.spec.cwd, command, environment)
        for descriptor in {waits, out, err, refusal}:
            os.close(descriptor)
        if self.job.memory and not self.job.gpus:
            # CUDA reserves more than it uses, so that jobs with GPUs are trusted.
            limit = self.job.memory, self.job.memory
            resource.prlimit(child, resource.RLIMIT_DATA, limit)
        return child, release

    def _watch(self, child: int) -> int:
        """Wait for the job's end, or end it when it is time; return the status of `waitpid`."""
        status = None
        while True:
            # Adopted orphans are reaped here, too.
            with contextlib.suppress(ChildProcessError):
                while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                    if ended[0] == child:
                        status = ended[1]
                    elif self._waits:
                        self._waits.note_end(*ended)
            if status is not None:
                self._note_shutdown(os.waitstatus_to_exitcode(status))
                # Unless what the job's process left behind has grace time left.
                if self._ended_by is None or self._is_killed or not descendants():
                    return status
            self._look()
            moments = [self._kill_at, self._signal_at(), self._ends_at]
            moments += [limit.due for limit in self._log_limits]
            if self._waits and self._ended_by is None:
                moments.append(self._waits.due(self._ends_at))
            if self._profiles:
                moments.append(self._profiles.due)
            due = [moment for moment in moments if moment is not None]
            self._sleep(min(due) - time.monotonic() if due else None)
            self._on_time(child)

    def _note_shutdown(self, code: int) -> None:
        """If a shutdown has ended the job's process, let what it has left behind end, too."""
        if self._ended_by is None and code in (-signal.SIGTERM, 128 + signal.SIGTERM):
            until = time.monotonic() + patience.cleanup
            while not self.asked_to_end and (left := until - time.monotonic()) > 0:
                self._sleep(left)
        if self.asked_to_end and code:
            self._end(NODE_FAIL)

    def _sleep(self, seconds: float | None) -> None:
        """Wait for a signal, or until somebody has removed a file of the lease."""
        # `poll` cannot wait for more than 24 days.
        most = None if seconds is None else min(max(0.0, seconds), 86_400.0) * 1000 + 1
        ready = self._poll.poll(most)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        if self._lease and any(descriptor != self._wakeup for descriptor, _ in ready):
            self._lease.mend()

    def _look(self) -> None:
        """Read what others want of the job: its end, or another limit."""
        with contextlib.suppress(DistError):  # a full disk, say: the job goes on
            fresh = self._store.get(self.job.id)
            if fresh.limit != self.job.limit and self._ended_by is None:
                self._ends_at = None if fresh.limit is None else self._started + fresh.limit
                if self._lease:
                    since = fresh.started or time.time()
                    ends_by = None if fresh.limit is None else since + fresh.limit
                    self._lease.tell(ends_by=ends_by)
            self.job = fresh
            if fresh.cancel_at is not None:
                self._end(CANCELLED)
            if fresh.kill and self._kill_at is not None:
                self._kill_at = min(self._kill_at, time.monotonic())
            # The job may have submitted jobs, or a server in it has seen that others are lost.
            if not self.asked_to_end:  # a shutdown: nothing is to start now
                lost = fresh.cancel_at is None and any_is_lost(self._store)
                ensure(self._store, also_if=lost)
        if self.asked_to_end and self._ended_by is None:
            self._end(NODE_FAIL)

    def _signal_at(self) -> float | None:
        if self.job.spec.signal is None or self._signal_sent or self._ends_at is None:
            return None
        return self._ends_at - self.job.spec.signal[1]

    def _on_time(self, child: int) -> None:
        now, spec = time.monotonic(), self.job.spec
        if (moment := self._signal_at()) and now >= moment and spec.signal:
            self._signal_sent = True
            number, first = spec.signal[0], child if spec.signal_first else None
            send(to_warn(descendants(), number, first), number)
        if self._ends_at is not None and now >= self._ends_at:
            self._end(TIMEOUT)
        for limit in self._log_limits:
            if limit.due is not None and now >= limit.due:
                limit.look()
        if self._waits and self._ended_by is None:
            due = self._waits.due(self._ends_at)
            if due is not None and now >= due:
                with contextlib.suppress(OSError):  # out of descriptors or processes
                    self._waits.look(self._ends_at)
        if self._profiles and self._profiles.due is not None and now >= self._profiles.due:
            with contextlib.suppress(OSError):  # as above
                self._profiles.look()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = now + 1.0  # again, for what was started meanwhile
            processes = descendants()
            if self._is_killed:
                self._tell_who_stays(processes)
            self._is_killed = True
            send(processes, signal.SIGKILL)

    def _end(self, state: str) -> None:
        if self._ended_by is None:
            self._ended_by = state
            self._ends_at = None
            self._kill_at = self._kill_at or time.monotonic() + self.job.spec.grace
            with contextlib.suppress(DistError):  # a full disk: it is ended all the same
                self._store.move(self.job, COMPLETING)
                self.job = self._store.get(self.job.id)
            processes = descendants()
            send(processes, signal.SIGTERM)
            send(processes, signal.SIGCONT)

    def _end_leftovers(self) -> None:
        while processes := descendants():
            send(processes, signal.SIGKILL)
            self._tell_who_stays(alive_after(processes, patience.cleanup))

    def _tell_who_stays(self, processes: list[Descendant]) -> None:
        """Name the processes that SIGKILL has not ended: in the kernel, or another user's."""
        if not (told := names(processes)) or self._told == told:
            return
        with contextlib.suppress(DistError):
            if self.job.state == COMPLETING:
                self._store.change([self.job.id], detail=f"Waits for {told} to end.")
            else:
                self._store.move(self.job, COMPLETING, detail=f"Waits for {told} to end.")
            self.job = self._store.get(self.job.id)
            self._told = told

    def _outcome(self, code: int) -> dict[str, Any]:
        told = ""
        if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
            words = self._memory.explain()
            told = f"Ended by signal 9 (SIGKILL){words}" if words else ""
        found = outcome(self.job, code, self._ended_by, told, self._begins)
        details = [found["detail"]]
        if self._waits and self._ended_by == TIMEOUT:
            details.append(self._waits.told)
        with contextlib.suppress(DistError):
            usage = self._store.usage(self.job)
            details += [unused_gpus(self.job, usage), other_gpus(usage)]
        if full := [log.path for log in self._log_limits if log.was_full]:
            details.append(f"The disk of {' and '.join(full)} was full: output may be missing.")
        return found | {"detail": " ".join(filter(None, details))}

    def _finish(self, state: str, reason: str, detail: str, **fields: int) -> None:
        """Write the job's end, or leave it in a file."""
        end = {"state": state, "reason": reason, "detail": detail, "ended": time.time()} | fields
        until = time.monotonic() + 2 * patience.program
        while True:
            try:
                write_end(self._store, self.job, end)
                return
            except DistError:
                # A machine that is shut down does not wait for us.
                if self.asked_to_end or time.monotonic() > until:
                    leave_end(self._store, self.job, end)
                    return
                self._sleep(1.0)


def _first_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}."
    return str(error).splitlines()[0]
