"""The dispatcher: starts one user's jobs when it is their turn, and ends when none waits.

It owns nothing: the store has the jobs, runners have the GPUs. It can be killed at any moment;
whatever finds a waiting job and no dispatcher starts another one.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from ..common.files.own_files import own
from ..common.files.shared_folder import folder as lease_folder
from ..common.policy import watched_folder
from ..common.processes.process_ref import boot_id
from ..common.protocol.leaseholder import Leaseholder
from ..gpus.gpu_state import GpuState
from ..gpus.readers.gpu_reader import GpuReader
from .file_changes import Wake
from .gpu_list import keep_gpus
from .job_end import recover, wait_again
from .leases.lease import GpuTaken, Lease
from .runner.runner_zygote import RunnerZygote
from .schedule.board import JOBS, Board, Posted, order_lock
from .schedule.may_start import NEVER, Obstacle, obstacles
from .schedule.plan import Plan
from .schedule.situation import Situation, others, situation_of, wants_of_jobs
from .schedule.trust import Trust
from .schedule.waiting_sentences import detail
from .start_dispatcher import ensure_sampler
from .store.job import AGAIN, Job
from .store.states import CANCELLED, CONFIGURING, NOT_STARTED
from .store.store import Store
from .store.store_folder import store_name

_LOG = logging.getLogger(__name__)

_FIRST = 256
"""Jobs that come before all others in a pass, and are shown to other users."""


class Dispatcher:
    """Starts the jobs of one store.

    `announced` becomes readable once the process that was about to submit a job has ended; the
    dispatcher waits for that job until then.
    """

    def __init__(
        self,
        store: Store,
        zygote: RunnerZygote,
        reader: GpuReader,
        announced: io.FileIO | None = None,
    ) -> None:
        self._store = store
        self._zygote = zygote
        self._name = store_name(store.folder)
        self._reader = reader
        self._announced = announced
        self._seen: GpuState | None = None
        self._seen_at = float("-inf")
        self._board = Board(JOBS, self._name)
        self._trust = Trust()
        self._head_since: dict[int, float] = {}

    def run(self) -> bool:
        """Start jobs until none waits; return false if another dispatcher has to go on.

        That is so once the zygote has ended, or a newer version has changed the format of the
        queue: its jobs may ask for what we do not know.
        """
        wake = Wake([self._store.watched, lease_folder()])
        wake.add(self._zygote.fileno())
        if self._announced:
            wake.add(self._announced.fileno())
        try:
            recover(self._store)  # it may have been started for that alone
            # A job that is being started waits again if the one that forks its runner cannot.
            while self._announced or not self._store.is_idle() or self._store.is_starting():
                if self._store.is_newer():
                    _LOG.warning("A newer version has changed the format of the queue")
                    return False
                wake.watch(watched_folder())  # another one, once the policy has a folder
                wait = self.once()
                if self._store.is_starting():
                    look = self._zygote.end_if_stopped()
                    wait = look if wait is None else min(wait, look)
                ready = wake.wait(wait)
                if self._zygote.fileno() in ready:
                    _LOG.warning("The process that forks runners has ended")
                    return False
                if self._announced and self._announced.fileno() in ready:
                    wake.remove(self._announced.fileno())
                    self._announced.close()
                    self._announced = None
            return True
        finally:
            self._board.close()
            self._reader.close()
            wake.close()

    def once(self) -> float | None:
        """Start what can start now; return after how many seconds to look again, if at all."""
        recover(self._store)
        pending = self._store.pending(_FIRST)
        started, wait = self._pass(pending)
        if len(pending) < _FIRST:
            return wait
        if not started:  # reading a long queue takes time: no free GPU is to wait for that
            started, wait = self._pass(self._store.pending())
        return 0.0 if started else wait

    def _pass(self, pending: list[Job]) -> tuple[bool, float | None]:
        now, active = time.time(), self._store.active()
        found = obstacles(pending, active, self._store.dependencies(), now)
        eligible = [job for job in pending if job.id not in found]
        if any(job.gpus for job in eligible) and self._seen is None:
            if self._seen_at == float("-inf"):
                self._trust = Trust()  # no plan of ours has had GPUs, and so a head for them
            self._read()
        there, wanted, boards = self._look(eligible, active)
        started = failed = False
        if any(str(job.id) in wanted.starts for job in eligible):
            if any(wanted.starts.get(str(job.id)) for job in eligible):
                self._read()  # somebody may have come who has no lease
            with order_lock():
                there, wanted, boards = self._look(eligible, active)
                for job in eligible:
                    if str(job.id) in wanted.starts:
                        is_ours = self._start(job, wanted.starts[str(job.id)])
                        started, failed = started or is_ours, failed or not is_ours
                self._show(eligible, wanted)
            ensure_sampler(self._store)
        else:
            self._show(eligible, wanted)
        self._tell(pending, found, wanted, there)
        untils = [one.until - now for one in found.values() if one.until is not None]
        clocks = [min(*untils, 60.0)] if untils else []  # a wait does not count a suspend
        if (change := there.machine.rules.next_change(now)) is not None:
            clocks.append(min(change - now, 60.0))
        if (late := self._trust.note(boards, wanted)) is not None:
            clocks.append(late)
        if failed:
            self._board.beat()
            clocks.append(0.1)
        if self._seen and (every := _read_again(there, wanted)):
            due = self._seen_at + every - time.monotonic()
            clocks.append(due)
            if due <= 0:
                self._seen = None
                if not there.machine.blocked:  # a new process lists GPUs anew
                    self._reader.close()
        return started, max(0.0, min(clocks)) if clocks else None

    def _look(self, eligible: list[Job], active: list[Job]) -> tuple[Situation, Plan, list[Posted]]:
        boards = self._trust.who_counts(others(self._store))
        there = situation_of(self._store, self._seen, eligible, active, boards, self._head_since)
        return there, there.plan(), boards

    def _read(self) -> None:
        self._seen = self._reader.read()
        self._seen_at = time.monotonic()
        keep_gpus(self._store.folder, self._seen.inventory)

    def _start(self, job: Job, uuids: tuple[str, ...]) -> bool:
        """Give a job to a runner; return false if somebody else took its GPUs first."""
        with contextlib.ExitStack() as files:
            try:
                descriptors = [
                    files.enter_context(_take_run_lock(self._store.run_lock(job))).fileno()
                ]
                if uuids or job.cpus or job.memory:
                    lease = files.enter_context(contextlib.closing(self._lease(job, uuids)))
                    descriptors += lease.descriptors
            except (GpuTaken, BlockingIOError) as error:
                _LOG.info("Job %s: %s was taken by somebody else meanwhile", job.label, error)
                return False
            launch = os.urandom(8).hex()
            fields = AGAIN | {"gpu_uuids": uuids, "launch": launch, "boot": boot_id()}
            if self._store.move(job, CONFIGURING, reason="None", detail="", **fields):
                try:
                    self._zygote.run(self._store.folder, job.id, launch, descriptors)
                except OSError as error:
                    _LOG.warning("Job %s could not be given to a runner: %s", job.label, error)
                    wait_again(self._store, self._store.get(job.id))
        return True

    def _lease(self, job: Job, uuids: tuple[str, ...]) -> Lease:
        who = Leaseholder(
            pid=os.getpid(),
            since=time.time(),
            pool=f"job-{job.id}-{os.urandom(4).hex()}",
            notebook=job.name,
            host=os.uname().nodename,
            job=job.id,
            label=job.label,
            store=self._name,
            cpus=job.cpus,
            memory_mib=job.memory >> 20,
            share_mib=None if job.share is None else job.share >> 20,
            ends_by=None if job.limit is None else time.time() + job.limit,
        )
        return Lease.take(uuids, who, job.share is not None)

    def _show(self, eligible: list[Job], wanted: Plan) -> None:
        """Show others which of our jobs wait."""
        waiting = [job for job in eligible if str(job.id) not in wanted.starts][:_FIRST]
        head = int(wanted.head.id) if wanted.head and wanted.head.id.isdecimal() else None
        since = {} if head is None else {head: self._head_since.get(head, time.time())}
        self._head_since = since
        sees = [gpu.uuid for gpu in self._seen.inventory.gpus] if self._seen else []
        self._board.show(wants_of_jobs(waiting, since), sees)

    def _tell(
        self, pending: list[Job], found: Mapping[int, Obstacle], wanted: Plan, there: Situation
    ) -> None:
        """Write why jobs wait, where that has changed."""
        wants = {want.id: want for want in there.ordered}
        changed: dict[tuple[str, str], list[int]] = {}
        cancelled: dict[str, list[int]] = {}
        for job in pending:
            if job.id in found:
                text = found[job.id].reason, found[job.id].detail
                if text[0] == NEVER and job.spec.kill_on_invalid_dep:
                    cancelled.setdefault(f"{text[1]} {NOT_STARTED}", []).append(job.id)
                    continue
            elif reason := wanted.reason(wants[str(job.id)]):
                text = reason, detail(job, reason, there, wanted, self._seen)
            else:
                continue
            if text != (job.reason, job.detail):
                changed.setdefault(text, []).append(job.id)
        for (reason, told), ids in changed.items():
            self._store.change(ids, "state = 'PENDING'", reason=reason, detail=told)
        for told, ids in cancelled.items():  # an array at once: a transaction waits for the disk
            ends = {"state": CANCELLED, "reason": NEVER, "detail": told, "ended": time.time()}
            self._store.change(ids, "state = 'PENDING'", **ends)


def _take_run_lock(path: Path) -> io.FileIO:
    """Lock a job's file for its runner, unless an earlier runner of the job still has it locked."""
    with contextlib.ExitStack() as undo:
        file = undo.enter_context(own(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)))
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        undo.pop_all()
    return file


def _read_again(there: Situation, wanted: Plan) -> float | None:
    """Return when to ask NVML again, in seconds, if only NVML can tell that a job may start."""
    if there.machine.blocked:  # by processes without a lease
        return 3.0
    missing = {"ReqNodeNotAvail", "BadConstraints"} & set(wanted.reasons.values())
    return 30.0 if missing else None
