"""What a plan is made from: the machine, who has what, and who waits."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ...common.files.past_use import average_of, past_use
from ...common.processes import control_groups as groups
from ...common.protocol.offers import InLine
from ...common.users import name_of
from ...gpus.used_without_lease import in_use
from ..leases.lease import GpuLease, KnownLeaseholder, holders, running
from ..rules.rules import read_rules
from ..store.job import Job
from ..store.store import Store
from ..store.store_folder import store_name
from .board import POOL, Posted, posted, wants_of
from .limits import Running
from .order import in_order
from .plan import Plan, forecast, never, plan
from .wants import InUse, Machine, Want, copied

if TYPE_CHECKING:
    from ...gpus.gpu_state import GpuState


_Given = TypeVar("_Given", InUse, Want)


@dataclass(frozen=True)
class Situation:
    """What `plan` and `forecast` are asked about."""

    machine: Machine
    held: list[InUse]
    ordered: list[Want]
    leases: dict[str, GpuLease]
    """Who leases GPUs, see `lease.holders`."""
    now: float

    @cached_property
    def running(self) -> Running:
        """What users and groups have, beside their limits."""
        return Running(self.machine.rules.policy, self.held)

    def plan(self) -> Plan:
        """Decide what starts now."""
        return plan(self.machine, self.held, self.ordered, self.now)


def situation(
    gpus: GpuState | None,
    wants: Sequence[Want],
    others: Iterable[Posted],
    *,
    active: Iterable[Job] = (),
    store: str = "",
    blocked: Collection[str] | None = None,
) -> Situation:
    """Look at leases, and bring them together with our own entries and those of others.

    `others` has the boards that count, without our own; `active` our jobs that have a runner, which
    are the leases of `store`; `blocked` the UUIDs of GPUs that are in use without a lease, by
    default as NVML says.
    """
    now, user = time.time(), name_of(os.getuid())
    leases = holders(gpus.inventory) if gpus else {}
    held = [_held(job, user) for job in active]
    ours = {one.id for one in held}
    cores, memory = groups.usable_cores(), groups.usable_memory()
    left = beside = _Beside(groups.machine_cores() - cores, groups.machine_memory() - memory)
    for said in running():
        if said.user != user or said.store != store or str(said.job) not in ours:
            one = _leased(said, now)
            held.append(left.beyond(one))
            left = _Beside(max(0, left.cpus - one.cpus), max(0, left.memory - one.memory))
    known = {uuid for one in held for uuid in one.gpus}
    held += [InUse(f"lock {uuid}", "", frozenset([uuid]), now) for uuid in leases.keys() - known]
    if gpus and blocked is None:
        blocked = in_use(gpus, leases)
    machine = Machine(
        {gpu.uuid: gpu.memory_total for gpu in gpus.inventory.gpus} if gpus else {},
        frozenset(blocked or ()) - leases.keys(),
        cores,
        memory,
        read_rules(gpus.inventory if gpus else None),
    )
    possible: list[Want] = []
    impossible: list[Want] = []
    for want in [*wants, *map(beside.beyond, wants_of(others))]:
        (impossible if never(machine, want) else possible).append(want)
    past = _averages(held, now, machine.rules.policy.half_life)
    return Situation(machine, held, in_order(held, possible, now, past) + impossible, leases, now)


def _averages(held: Iterable[InUse], now: float, half_life: float) -> dict[str, float]:
    """Return how many GPUs users have had of late; what says nothing counts as the most."""
    past = past_use()
    known = {uid: use.average_at(now, half_life) for uid, use in past.items() if use}
    most = max(known.values(), default=0.0)
    found = {name_of(uid): known.get(uid, most) for uid in past}
    for one in held:
        found[one.user] = found.get(one.user, 0.0) + average_of(
            len(one.gpus), now - one.since, half_life
        )
    # A tenth of a GPU is no reason to come after somebody who has waited for longer.
    return {user: round(average, 1) for user, average in found.items()}


@dataclass(frozen=True)
class _Beside:
    """What the machine has and we may not use, in a container or a Slurm job: others have it."""

    cpus: int
    memory: int

    def beyond(self, one: _Given) -> _Given:
        """Return what somebody takes, or wants, of what we may use."""
        if not (self.cpus or self.memory):
            return one
        return replace(
            one, cpus=max(0, one.cpus - self.cpus), memory=max(0, one.memory - self.memory)
        )


def others(store: Store) -> list[Posted]:
    """Return all boards but that of our own dispatcher: the store says more."""
    return [board for board in posted() if not _is_own(board, store)]


def _shown_head(store: Store) -> dict[int, float]:
    """Return since when one of our jobs has been the head, as our dispatcher shows it."""
    return {
        int(entry.id): entry.head_since
        for board in posted()
        if _is_own(board, store)
        for entry in board.content.queue
        if entry.head_since is not None and entry.id.isdecimal()
    }


def _is_own(board: Posted, store: Store) -> bool:
    return (board.uid, board.content.store) == (os.getuid(), store_name(store.folder))


def situation_of(
    store: Store,
    gpus: GpuState | None,
    eligible: Iterable[Job],
    active: Iterable[Job],
    boards: Iterable[Posted] | None = None,
    head_since: Mapping[int, float] | None = None,
) -> Situation:
    """Look at all as a queue's dispatcher does.

    `boards` are those of others that count, by default all; `head_since` since when a job has been
    the head, by default as our dispatcher shows it.
    """
    return situation(
        gpus,
        wants_of_jobs(eligible, _shown_head(store) if head_since is None else head_since),
        others(store) if boards is None else boards,
        active=active,
        store=store_name(store.folder),
    )


def wants_of_jobs(jobs: Iterable[Job], head_since: Mapping[int, float]) -> list[Want]:
    """Return the entries of jobs that may start; `head_since` tells since when one is the head."""
    user = name_of(os.getuid())
    return [
        Want(
            str(job.id),
            user,
            job.queued,
            only=frozenset(job.gpu_ids) if job.gpu_ids else None,
            head_since=head_since.get(job.id, float("inf")),
            name=job.name,
            **copied(job),
        )
        for job in jobs
    ]


@dataclass(frozen=True)
class Waiting:
    """An entry that waits, and the GPUs that are reserved for it."""

    user: str
    pool: str
    """Or ``job-`` and its number."""
    notebook: str
    since: float
    gpus: frozenset[str]


def first(there: Situation, wanted: Plan, want: Want) -> list[Waiting]:
    """Tell who comes before an entry, and gets which of the free GPUs."""
    free = there.machine.gpus.keys() - {uuid for one in there.held for uuid in one.gpus}
    free -= set(wanted.choices.get(want.id, ()))
    by_id = {one.id: one for one in there.ordered}
    found = []
    for id, uuids in wanted.starts.items():
        if id != want.id:
            found.append(_waiting(by_id[id], free.intersection(uuids)))
            free = free.difference(uuids)
    if wanted.head and wanted.head.id != want.id:
        found.append(_waiting(by_id[wanted.head.id], free & wanted.kept))
    return [who for who in found if who.gpus]


def where_in_line(there: Situation, wanted: Plan, want: Want) -> InLine | None:
    """Tell which place an entry has among those that wait; `None` if it need not wait."""
    waiting = [id for id in wanted.order if id not in wanted.starts]
    if want.id not in waiting:
        return None
    place = waiting.index(want.id) + 1
    expected = forecast(there.machine, there.held, there.ordered, there.now).get(want.id)
    return InLine(place, expected.start, expected.certain) if expected else InLine(place)


def _waiting(want: Want, uuids: Iterable[str]) -> Waiting:
    file, _, id = want.id.partition(" ")
    pool = id if file.startswith(POOL) else f"job-{id}"
    return Waiting(want.user, pool, want.name, want.queued, frozenset(uuids))


def _held(job: Job, user: str) -> InUse:
    since, ends_by = job.started or time.time(), job.ends_by
    if job.started is None and job.limit is not None:  # its runner writes the end at its start
        ends_by = since + job.limit
    needs = job.cpus, job.memory, job.share
    return InUse(str(job.id), user, frozenset(job.gpu_uuids), since, ends_by, *needs, job.name)


def _leased(said: KnownLeaseholder, now: float) -> InUse:
    """Read what another process says that it has; it may say anything."""
    return InUse(
        said.file,
        said.user,
        frozenset(said.gpus),
        since=now if said.since is None else min(said.since, now),
        ends_by=said.ends_by,
        cpus=said.cpus,
        memory=said.memory_mib << 20,
        share=(said.share_mib or 0) << 20 if said.shared else None,
        name=said.notebook or "",
    )
