"""The dispatcher: starts one user's jobs when it is their turn, and ends when none waits.

It owns nothing: the store has the jobs, runners have the GPUs. It can be killed at any moment, and
is started again by whoever finds that a job waits and no dispatcher is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import logging
import os
import secrets
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from ..common.errors import DistError
from ..common.files.own_files import own
from ..common.interpreter import python_command
from ..common.processes import boot_id, call_ourselves
from ..gpus.gpu_state import GpuState, read_gpu_state
from .eligible import Obstacle, obstacles
from .job import AGAIN, Job
from .lease import GpuTaken, Lease
from .line import Ticket
from .plan import Plan, plan
from .recovery import recover
from .shared_folder import folder as lease_folder
from .situation import Situation, situation, ticket_name
from .states import CONFIGURING, PENDING
from .store import Store
from .wake import Wake
from .zygote import RunnerZygote

_LOG = logging.getLogger(__name__)

_READ_EVERY = 3.0
"""Seconds between two readings of NVML while processes without a lease are in the way."""
_FRESH = 1.0
"""Seconds for which a reading of NVML is good enough to grant a GPU."""
_TRIES, _PAUSE = 20, 0.01
"""How often the lock is tried, and seconds in between."""
_BEAT = 5.0
"""Seconds between two signs of life in the line."""


class Dispatcher:
    """Starts the jobs of one store.

    Parameters
    ----------
    store : Store
        The jobs.
    zygote : RunnerZygote
        Forks their runners.
    """

    def __init__(self, store: Store, zygote: RunnerZygote) -> None:
        self._store = store
        self._zygote = zygote
        self._seen: GpuState | None = None
        self._seen_at = float("-inf")
        self._ticket: tuple[int, Ticket] | None = None
        self._head_since: dict[int, float] = {}

    def run(self) -> None:
        """Start jobs until none waits."""
        wake = Wake([self._store.watched, lease_folder()])
        wake.add(self._zygote.fileno())
        try:
            while not self._store.is_idle():
                wait = self.once()
                if self._zygote.fileno() in wake.wait(wait):
                    _LOG.warning("The process that forks runners has ended; starting again")
                    self._give_up_place()
                    os.execv(
                        sys.executable,
                        [*python_command(sys.executable, __name__), str(self._store.folder)],
                    )
        finally:
            self._give_up_place()
            wake.close()

    def once(self) -> float | None:
        """Start what can be started now; return after how many seconds to look again, if so."""
        recover(self._store)
        now = time.time()
        pending, active = self._store.pending(), self._store.active()
        found = obstacles(pending, active, self._store.dependencies(), now)
        eligible = [job for job in pending if job.id not in found]
        if any(job.gpus for job in eligible) and self._seen is None:
            self._read()
        there, wanted = self._plan(eligible, active, now)
        if any(wanted.starts.get(str(job.id)) for job in eligible) and self._is_old(_FRESH):
            self._read()  # somebody may have come who has no lease
            there, wanted = self._plan(eligible, active, now)
        for job in eligible:
            if str(job.id) in wanted.starts:
                self._start(job, wanted.starts[str(job.id)])
        self._stay_in_line(wanted, eligible)
        self._tell(pending, found, wanted, there)
        clocks = [one.until - now for one in found.values() if one.until is not None]
        if self._ticket:
            clocks.append(_BEAT)
        if there.machine.blocked:
            clocks.append(_READ_EVERY)
            if self._is_old(_READ_EVERY):
                self._seen = None
        return max(0.0, min(clocks)) if clocks else None

    def _plan(self, eligible: list[Job], active: list[Job], now: float) -> tuple[Situation, Plan]:
        there = situation(eligible, active, self._seen, self._head_since)
        return there, plan(there.machine, there.held, there.ordered, now)

    def _read(self) -> None:
        self._seen = asyncio.run(read_gpu_state())
        self._seen_at = time.monotonic()

    def _is_old(self, age: float) -> bool:
        return time.monotonic() - self._seen_at > age

    def _start(self, job: Job, uuids: tuple[str, ...]) -> None:
        with contextlib.ExitStack() as files:
            try:
                descriptors = [files.enter_context(_locked(self._store.run_lock(job))).fileno()]
                if uuids:
                    lease = files.enter_context(self._lease(job, uuids))
                    descriptors += lease.descriptors
            except (GpuTaken, BlockingIOError) as error:
                _LOG.info("Job %s: %s was taken by somebody else meanwhile", job.label, error)
                return
            launch = secrets.token_hex(8)
            started = self._store.move(
                job,
                CONFIGURING,
                reason="None",
                detail="",
                launch=launch,
                boot=boot_id(),
                **AGAIN | {"gpu_uuids": uuids},
            )
            if started:
                try:
                    self._zygote.run(self._store.folder, job.id, launch, descriptors)
                except OSError as error:
                    _LOG.warning("Job %s could not be given to a runner: %s", job.label, error)
                    self._store.move(self._store.get(job.id), PENDING)

    def _lease(self, job: Job, uuids: tuple[str, ...]) -> Lease:
        who = {
            "pid": os.getpid(),
            "since": time.time(),
            "pool": f"job-{job.id}-{secrets.token_hex(4)}",
            "notebook": job.name,
            "host": os.uname().nodename,
            "job": job.id,
            "ends_by": None if job.limit is None else time.time() + job.limit,
        }
        return Lease.take(uuids, who, job.share is not None)

    def _stay_in_line(self, wanted: Plan, eligible: list[Job]) -> None:
        """Let others see the first of our jobs that waits for GPUs."""
        head = next(
            (job for job in eligible if job.gpus and str(job.id) not in wanted.starts), None
        )
        self._head_since = {head.id: self._head_since.get(head.id, time.time())} if head else {}
        if self._ticket and (not head or self._ticket[0] != head.id):
            self._give_up_place()
        if head and self._seen and not self._ticket:
            all_gpus = [gpu.uuid for gpu in self._seen.inventory.gpus]
            who = {
                "pid": os.getpid(),
                "since": head.queued,
                "pool": ticket_name(os.getuid(), head),
                "notebook": head.name,
                "host": os.uname().nodename,
                "count": head.gpus,
            }
            ticket = Ticket(who, head.gpu_ids or all_gpus)
            ticket.__enter__()
            self._ticket = head.id, ticket
        elif self._ticket:
            self._ticket[1].ahead()

    def _give_up_place(self) -> None:
        if self._ticket:
            self._ticket[1].__exit__(None, None, None)
            self._ticket = None

    def _tell(
        self,
        pending: list[Job],
        found: Mapping[int, Obstacle],
        wanted: Plan,
        there: Situation,
    ) -> None:
        """Write why jobs wait, where that has changed."""
        wants = {want.id: want for want in there.ordered}
        changed: dict[tuple[str, str], list[int]] = {}
        for job in pending:
            if job.id in found:
                text = found[job.id].reason, found[job.id].detail
            elif reason := wanted.reason(wants[str(job.id)]):
                text = reason, self._detail(job, reason, there)
            else:
                continue
            if text != (job.reason, job.detail):
                changed.setdefault(text, []).append(job.id)
        for (reason, detail), ids in changed.items():
            self._store.change(ids, "state = 'PENDING'", reason=reason, detail=detail)

    def _detail(self, job: Job, reason: str, there: Situation) -> str:
        gpus = len(there.machine.gpus)
        if reason == "BadConstraints" and job.gpus > gpus:
            why = self._seen.inventory.reason if self._seen and not gpus else None
            return f"It needs {job.gpus} GPUs. {why or f'This machine has {gpus}.'}"
        if reason == "BadConstraints":
            return "This machine does not have the cores or the memory that it asks for."
        if reason == "ReqNodeNotAvail":
            return "A GPU that it asks for is not available."
        if reason == "Resources" and job.gpus:
            used = set().union(*(one.gpus for one in there.held)) | there.machine.blocked
            return f"It needs {job.gpus} GPUs; {len(there.machine.gpus.keys() - used)} are free."
        return "It waits for cores or memory." if reason == "Resources" else ""


def _locked(path: Path) -> io.FileIO:
    """Open a file and lock it.

    Raises
    ------
    BlockingIOError
        If somebody else has it locked: a runner of an earlier attempt is not gone yet.
    """
    file = own(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file


def _lock(file: int) -> bool:
    """Lock a file, unless a dispatcher has it; who only looks has it for an instant."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE)
        else:
            return True
    return False


def main() -> None:
    """Be the dispatcher of a folder, unless there is one."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    folder = Path(sys.argv[1])
    zygote = RunnerZygote()
    call_ourselves("dist-dispatcher")
    lock = os.open(folder / "dispatcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    store = None
    while True:
        if not _lock(lock):
            return
        store = store or Store(folder)
        try:
            Dispatcher(store, zygote).run()
        except DistError:
            _LOG.exception("The dispatcher ends")
            raise
        fcntl.flock(lock, fcntl.LOCK_UN)
        # Whoever submits a job now starts a dispatcher; whoever did so before saw our lock.
        if store.is_idle():
            return
