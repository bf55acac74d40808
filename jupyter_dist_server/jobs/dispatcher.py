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
from typing import Any

import psutil

from ..common.errors import DistError
from ..common.interpreter import python_command
from ..common.processes import boot_id, call_ourselves
from ..gpus.telemetry import Snapshot, snapshot
from .eligible import obstacles
from .held_file import name_of
from .job import Job
from .lease import GpuTaken, Lease, holders
from .line import Ticket, in_line
from .plan import Held, Machine, Plan, Want, in_order, plan
from .recovery import recover
from .shared_folder import folder as lease_folder
from .shared_folder import own
from .states import CONFIGURING, PENDING
from .store import Store
from .wake import Wake
from .zygote import RunnerZygote

_LOG = logging.getLogger(__name__)

REAL_MEMORY = 64 * 2**20
"""Bytes on a GPU above which a process uses it."""
_READ_EVERY = 3.0
"""Seconds between two readings of NVML while processes without a lease are in the way."""
_FRESH = 1.0
"""Seconds for which a reading of NVML is good enough to grant a GPU."""
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
        self._user = name_of(os.getuid())
        self._seen: Snapshot | None = None
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
        pending = self._store.pending()
        found = obstacles(pending, self._store.active(), self._store.dependencies(), now)
        eligible = [job for job in pending if job.id not in found]
        wanted = self._plan(eligible, now)
        starts = wanted.starts.keys() & {str(job.id) for job in eligible}
        needs_gpus = any(wanted.starts[id] for id in starts)
        if needs_gpus and time.monotonic() - self._seen_at > _FRESH:
            self._read()  # somebody may have come who has no lease
            wanted = self._plan(eligible, now)
        for job in eligible:
            if str(job.id) in wanted.starts:
                self._start(job, wanted.starts[str(job.id)])
        self._stay_in_line(wanted, eligible)
        self._tell(pending, found, wanted)
        return self._next_look(found, now)

    def _plan(self, eligible: list[Job], now: float) -> Plan:
        if self._seen is None and any(job.gpus for job in eligible):
            self._read()
        ours = [self._want(job) for job in eligible]
        leases = self._leases()
        held = [_held(job, self._user) for job in self._store.active()]
        mine = {uuid for one in held for uuid in one.gpus}
        held += [
            Held(
                f"lease {uuid}",
                who["user"] or "",
                frozenset([uuid]),
                since=float(who.get("since") or now),
                ends_by=who.get("ends_by"),
            )
            for uuid, who in leases.items()
            if uuid not in mine
        ]
        queues: dict[str, list[Want]] = {self._user: ours}
        for ticket in self._others():
            want = Want(
                ticket["file"],
                ticket["user"],
                float(ticket.get("since") or now),
                gpus=min(int(ticket.get("count") or len(ticket["gpus"])), len(ticket["gpus"])),
                only=frozenset(ticket["gpus"]),
            )
            queues.setdefault(f"{ticket['user']} ", []).append(want)
        machine = self._machine(leases)
        return plan(machine, held, in_order(held, queues, now), now)

    def _others(self) -> list[dict[str, Any]]:
        own = f"job-{self._ticket[0]}" if self._ticket else None
        return [who for who in in_line() if who.get("pool") != own] if self._seen else []

    def _leases(self) -> dict[str, dict[str, Any]]:
        return holders(self._seen.inventory) if self._seen else {}

    def _machine(self, leases: Mapping[str, Any]) -> Machine:
        gpus: dict[str, int] = {}
        blocked = set()
        if self._seen:
            for gpu in self._seen.inventory.gpus:
                gpus[gpu.uuid] = gpu.memory_total
                rows = self._seen.processes.get(gpu.uuid, [])
                if gpu.uuid not in leases and any(
                    (row["memory"] or 0) > REAL_MEMORY for row in rows
                ):
                    blocked.add(gpu.uuid)
        memory = psutil.virtual_memory().total
        return Machine(gpus, frozenset(blocked), os.cpu_count() or 1, memory)

    def _want(self, job: Job) -> Want:
        return Want(
            str(job.id),
            self._user,
            job.queued,
            gpus=job.gpus,
            only=frozenset(job.gpu_ids) if job.gpu_ids else None,
            limit=job.limit,
            cpus=job.cpus,
            memory=job.memory,
            share=job.share,
            head_since=self._head_since.get(job.id, float("inf")),
        )

    def _read(self) -> None:
        self._seen = asyncio.run(snapshot())
        self._seen_at = time.monotonic()

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
            fresh = dict.fromkeys(("runner_pid", "runner_start", "started", "ends_by", "ended"))
            fresh |= dict.fromkeys(("exit_code", "exit_signal"))
            started = self._store.move(
                job,
                CONFIGURING,
                reason="None",
                detail="",
                launch=launch,
                gpu_uuids=uuids,
                boot=boot_id(),
                **fresh,
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
                "pool": f"job-{head.id}",
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

    def _tell(self, pending: list[Job], found: Mapping[int, Any], wanted: Plan) -> None:
        """Write why jobs wait, where that has changed."""
        by_text: dict[tuple[str, str], list[int]] = {}
        for job in pending:
            if job.id in found:
                text = found[job.id].reason, found[job.id].detail
            elif reason := wanted.reason(self._want(job)):
                text = reason, self._detail(job, reason)
            else:
                continue
            if text != (job.reason, job.detail):
                by_text.setdefault(text, []).append(job.id)
        for (reason, detail), ids in by_text.items():
            self._store.change(ids, "state = 'PENDING'", reason=reason, detail=detail)

    def _detail(self, job: Job, reason: str) -> str:
        inventory = self._seen.inventory if self._seen else None
        there = len(inventory.gpus) if inventory else 0
        if reason == "BadConstraints" and inventory and job.gpus > there:
            return f"Needs {job.gpus} GPUs, and {inventory.reason or f'there are {there}'}."
        if reason == "ReqNodeNotAvail":
            return "A GPU that it names is not there now."
        if reason == "Resources":
            return f"Waits for {job.gpus} GPUs." if job.gpus else f"Waits for {job.cpus} cores."
        return "Other jobs come first."

    def _next_look(self, found: Mapping[int, Any], now: float) -> float | None:
        clocks = [one.until - now for one in found.values() if one.until is not None]
        if self._ticket:
            clocks.append(_BEAT)
        if self._machine(self._leases()).blocked:
            clocks.append(_READ_EVERY)
            if time.monotonic() - self._seen_at > _READ_EVERY:
                self._read()
        return max(0.0, min(clocks)) if clocks else None


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


def _held(job: Job, user: str) -> Held:
    return Held(
        str(job.id),
        user,
        frozenset(job.gpu_uuids),
        since=job.started or time.time(),
        ends_by=job.ends_by,
        cpus=job.cpus,
        memory=job.memory,
        share=job.share,
    )


def main() -> None:
    """Be the dispatcher of a folder, unless there is one."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    folder = Path(sys.argv[1])
    zygote = RunnerZygote()
    call_ourselves("dist-dispatcher")
    lock = os.open(folder / "dispatcher.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    store = None
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
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
