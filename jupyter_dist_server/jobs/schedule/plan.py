"""Which waiting entries start now, on which GPUs, and when to expect the others.

A pure function of boards, leases and the queue, so that all who wait come to the same plan. The
locks on GPUs keep it safe; a plan is only the order. The first entry that does not fit gets a
reservation, and later ones start if they do not delay it: EASY backfilling (D. Lifka, "The ANL/IBM
SP Scheduling System", 1995, https://doi.org/10.1007/3-540-60153-8_35).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .limits import Running
from .wants import LEAST_ASSUMED, InUse, Machine, Want

_HEAD_PATIENCE = 600.0
"""Seconds at the head after which GPUs are kept for an entry though no end is known."""


@dataclass(frozen=True)
class Reservation:
    """GPUs that are kept for the first entry that does not fit, from `start` on."""

    id: str
    gpus: frozenset[str]
    start: float
    """When the last of them is free."""
    certain: bool
    """Whether all that it waits for have a limit."""
    spare_cpus: int
    spare_memory: int
    """What is left then, when it has started, in bytes."""


@dataclass(frozen=True)
class Plan:
    """The result of a pass over the queue."""

    order: tuple[str, ...]
    starts: Mapping[str, tuple[str, ...]]
    """The UUIDs of the GPUs of each entry that starts now."""
    reasons: Mapping[tuple[object, ...], str]
    """Why entries of a shape, or a need, wait, in Slurm's words."""
    head: Reservation | None = None
    kept: frozenset[str] = frozenset()
    """GPUs that are kept for the head, from now on."""
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """All GPUs that an entry that starts could be given; a pool chooses among them."""

    def reason(self, want: Want) -> str | None:
        """Return why an entry waits; `None` if it starts."""
        if want.id in self.starts:
            return None
        if self.head and self.head.id == want.id:
            return "Resources"
        return self.reasons.get(want.shape) or self.reasons.get(want.need, "Priority")


class _Room:
    """What is free while a plan is made."""

    def __init__(self, machine: Machine, held: Iterable[InUse]) -> None:
        self.machine = machine
        self.users: dict[str, list[InUse]] = {uuid: [] for uuid in machine.gpus}
        self.cpus, self.memory = machine.cpus, machine.memory
        self.held: list[InUse] = []
        self.running = Running(machine.rules.policy)
        for one in held:
            self.take(one)

    def take(self, one: InUse) -> None:
        self.held.append(one)
        self.running.add(one)
        for uuid in one.gpus & self.users.keys():
            self.users[uuid].append(one)
        self.cpus -= one.cpus
        self.memory -= one.memory

    def open(self, want: Want, now: float) -> list[str]:
        """Return the GPUs that an entry may use now, if they are free."""
        closure = self.machine.rules.closure
        return [
            uuid
            for uuid in self.users
            if (want.only is None or uuid in want.only)
            and not closure(uuid, want.user, now, want.limit)
        ]

    def free(self, want: Want, among: Iterable[str]) -> Iterator[str]:
        """Yield the GPUs that an entry could be given now."""
        for uuid in among:
            if uuid in self.machine.blocked and not want.force:
                continue
            users = self.users[uuid]
            if not users or (want.share is not None and self._has_space(uuid, want.share)):
                yield uuid

    def _has_space(self, uuid: str, share: int) -> bool:
        used = [one.share for one in self.users[uuid]]
        space = self.machine.gpus[uuid] - sum(size or 0 for size in used)
        return None not in used and share <= space

    def reserve(self, want: Want, among: Iterable[str], now: float) -> Reservation:
        """Choose the GPUs that are free soonest for an entry that does not fit."""
        ends: dict[str, tuple[float, bool]] = {}
        for uuid in among:
            users = self.users[uuid]
            blocked = uuid in self.machine.blocked and not want.force
            end = max([one.end(now) for one in users] + [now + blocked * LEAST_ASSUMED])
            ends[uuid] = end, not blocked and all(one.has_known_end(now) for one in users)
        soonest = sorted(ends, key=lambda uuid: ends[uuid][0])[: want.gpus]
        start = max([ends[uuid][0] for uuid in soonest], default=now)
        certain = all(ends[uuid][1] for uuid in soonest)
        cpus, memory = self.cpus, self.memory
        for one in sorted(self.held, key=lambda one: one.end(now)):
            if one.end(now) > start and cpus >= want.cpus and memory >= want.memory:
                break
            cpus, memory = cpus + one.cpus, memory + one.memory
            if one.end(now) > start:
                start, certain = one.end(now), certain and one.has_known_end(now)
        return Reservation(
            want.id, frozenset(soonest), start, certain, cpus - want.cpus, memory - want.memory
        )


def plan(machine: Machine, held: Iterable[InUse], ordered: Sequence[Want], now: float) -> Plan:
    """Decide which entries, in the order of `order.in_order`, start now."""
    room = _Room(machine, held)
    starts: dict[str, tuple[str, ...]] = {}
    choices: dict[str, tuple[str, ...]] = {}
    reasons: dict[tuple[object, ...], str] = {}
    """By need, where no limit would help, as each of 10,000 may have another limit; or by shape."""
    head: Reservation | None = None
    kept: Reservation | None = None
    spare_cpus = spare_memory = 0
    for want in ordered:
        if want.need in reasons or want.shape in reasons:
            continue
        if reason := never(machine, want):
            reasons[want.need] = reason
            continue
        if exceeded := room.running.exceeded(want.user, want.gpus):
            reasons[want.need], _ = exceeded
            continue
        usable = room.open(want, now)
        if len(usable) < want.gpus:  # it keeps no GPU from others until then
            reasons[want.shape] = "ReqNodeNotAvail"
            continue
        free = list(room.free(want, usable))
        fits = room.cpus >= want.cpus and room.memory >= want.memory
        if not fits or len(free) < want.gpus:
            # Which GPUs are closed for it depends on its limit.
            reasons[want.shape if machine.rules.closed else want.need] = "Priority"
        # What ends before the head starts may use what is kept for it; anything else only the rest.
        delays = kept and not (want.limit is not None and now + want.limit <= kept.start)
        if kept:
            free.sort(key=kept.gpus.__contains__)
        if kept and delays:
            free = [uuid for uuid in free if uuid not in kept.gpus]
            fits = fits and spare_cpus >= want.cpus and spare_memory >= want.memory
        if fits and len(free) >= want.gpus:
            starts[want.id], choices[want.id] = tuple(free[: want.gpus]), tuple(free)
            room.take(_as_held(want, starts[want.id], now))
            if delays:
                spare_cpus, spare_memory = spare_cpus - want.cpus, spare_memory - want.memory
            continue
        reasons[want.shape] = "Priority" if head else "Resources"
        if head is None:
            head = room.reserve(want, usable, now)
            closure = machine.rules.closure
            if any(closure(uuid, want.user, head.start, want.limit) for uuid in head.gpus):
                reasons[want.shape], head = "ReqNodeNotAvail", None  # it starts only after that
                continue
            # While nobody knows an end, keeping GPUs idle would help nobody for long.
            if head.certain or now - want.head_since >= _HEAD_PATIENCE:
                kept, spare_cpus, spare_memory = head, head.spare_cpus, head.spare_memory
    gpus = kept.gpus if kept else frozenset()
    return Plan(tuple(want.id for want in ordered), starts, reasons, head, gpus, choices)


def never(machine: Machine, want: Want) -> str | None:
    """Say why an entry cannot start on this machine as it is now."""
    only = machine.gpus.keys() if want.only is None else want.only
    sizes = [size for uuid, size in machine.gpus.items() if uuid in only]
    if want.gpus and not machine.gpus:  # where it was submitted, there were some
        return "ReqNodeNotAvail"
    if len(sizes) < want.gpus <= len(only):
        return "ReqNodeNotAvail"
    too_large = want.gpus and want.share is not None and want.share > max(sizes, default=0)
    if (
        len(sizes) < want.gpus
        or want.cpus > machine.cpus
        or want.memory > machine.memory
        or too_large
    ):
        return "BadConstraints"
    return None


def _as_held(want: Want, gpus: tuple[str, ...], now: float) -> InUse:
    ends_by = None if want.limit is None else now + want.limit
    needs = want.cpus, want.memory, want.share
    return InUse(want.id, want.user, frozenset(gpus), now, ends_by, *needs)


@dataclass(frozen=True)
class Expected:
    """When an entry is expected to start."""

    start: float
    certain: bool
    """Whether it starts by then at the latest: all that it waits for have limits."""


def forecast(
    machine: Machine, held: Iterable[InUse], ordered: Sequence[Want], now: float, most: int = 200
) -> dict[str, Expected]:
    """Play the plan forward; return when the first entries start, by id, if they ever do."""
    waiting = list(ordered[:most])
    running = list(held)
    found: dict[str, Expected] = {}
    clock, certain = now, True
    while waiting:
        for id, gpus in plan(machine, running, waiting, clock).starts.items():
            found[id] = Expected(clock, certain)
            want = next(one for one in waiting if one.id == id)
            running.append(_as_held(want, gpus, clock))
        waiting = [replace(want, head_since=-math.inf) for want in waiting if want.id not in found]
        change = machine.rules.next_change(clock)
        first = min(running, key=lambda one: one.end(clock), default=None)
        if change is not None and (first is None or change < first.end(clock)):
            clock = change
        elif first:
            clock, certain = first.end(clock), certain and first.has_known_end(clock)
            running = [one for one in running if one.end(clock) > clock]
            if first in running:  # without a limit its end moves on with the clock
                running.remove(first)
        elif machine.blocked:
            # A process without a lease is assumed to go on for as long as one without a limit.
            machine = replace(machine, blocked=frozenset())
            clock, certain = max(clock, now + LEAST_ASSUMED), False
        else:
            break
    return found
