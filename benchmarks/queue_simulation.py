"""Which order serves users best: a seeded simulation of eight GPUs, four users and mixed jobs.

Four orders see the same jobs: ours (`plan` in the order between users), plain first come, first
served, gflow's (whatever fits, the oldest first), and Slurm's default (backfilling behind the
oldest job, whoever's it is).
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jupyter_dist_server.jobs.schedule.order import in_order
from jupyter_dist_server.jobs.schedule.plan import plan
from jupyter_dist_server.jobs.schedule.wants import InUse, Machine, Want

from .report import table

GPUS = 8
USERS = ("ann", "bob", "cat", "dan")
MACHINE = Machine({f"gpu{index}": 80 << 30 for index in range(GPUS)}, cpus=64, memory=1 << 40)
SIZES = ((1, 0.6), (2, 0.2), (4, 0.14), (8, 0.06))
"""Numbers of GPUs, and how often they are asked for."""
LOAD = 0.9
"""Of the machine, that the jobs ask for together."""

Order = Callable[[Sequence[InUse], list[Want], float], dict[str, tuple[str, ...]]]
"""From what is held, who waits (the oldest first) and the time to what starts now."""


@dataclass(frozen=True)
class SimJob:
    """A job of the simulation, and how long it really takes."""

    want: Want
    takes: float


@dataclass(frozen=True)
class Result:
    """What an order came to; times in hours."""

    utilization: float
    median_wait: dict[int, float]
    worst_wait: dict[int, float]


def jobs(count: int, seed: int) -> list[SimJob]:
    """Return jobs in the order of their submission; one user submits in large batches."""
    chance = random.Random(seed)
    sizes, weights = zip(*SIZES, strict=True)
    made: list[SimJob] = []
    now = 0.0
    while len(made) < count:
        user = chance.choice(USERS)
        batch = chance.randint(10, 40) if user == USERS[0] else 1
        now += chance.expovariate(1.0)
        for _ in range(min(batch, count - len(made))):
            size = 1 if user == USERS[0] else chance.choices(sizes, weights)[0]
            takes = min(chance.expovariate(1 / 1800.0) + 30, 12 * 3600.0)
            limit = None if chance.random() < 0.1 else takes * chance.uniform(1.05, 3.0)
            made.append(SimJob(Want(str(len(made)), user, now, gpus=size, limit=limit), takes))
    work = sum(job.takes * job.want.gpus for job in made)
    scale = work / (GPUS * LOAD) / now
    return [replace(job, want=replace(job.want, queued=job.want.queued * scale)) for job in made]


class Ours:
    """Starts what `plan` does, in the order between users; a head stays the head."""

    def __init__(self) -> None:
        self._head_since: dict[str, float] = {}

    def __call__(
        self, held: Sequence[InUse], waiting: list[Want], now: float
    ) -> dict[str, tuple[str, ...]]:
        since = self._head_since
        wants = [replace(one, head_since=since.get(one.id, math.inf)) for one in waiting]
        found = plan(MACHINE, held, in_order(held, wants, now), now)
        head = found.head
        self._head_since = {head.id: since.get(head.id, now)} if head else {}
        return dict(found.starts)


def slurm(held: Sequence[InUse], waiting: list[Want], now: float) -> dict[str, tuple[str, ...]]:
    """Backfill behind the oldest; a job without a limit has the partition's: a day."""
    day = 24 * 3600.0
    limited = [want if want.limit else replace(want, limit=day) for want in waiting]
    ends = [one if one.ends_by else replace(one, ends_by=one.since + day) for one in held]
    return dict(plan(MACHINE, ends, limited, now).starts)


def greedy(held: Sequence[InUse], waiting: list[Want], now: float) -> dict[str, tuple[str, ...]]:
    return _first_come(held, waiting, stops=False)


def fifo(held: Sequence[InUse], waiting: list[Want], now: float) -> dict[str, tuple[str, ...]]:
    """Start the oldest; nobody overtakes."""
    return _first_come(held, waiting, stops=True)


def _first_come(
    held: Sequence[InUse], waiting: list[Want], stops: bool
) -> dict[str, tuple[str, ...]]:
    used = {uuid for one in held for uuid in one.gpus}
    free = [uuid for uuid in MACHINE.gpus if uuid not in used]
    starts = {}
    for want in waiting:
        if len(free) >= want.gpus:
            starts[want.id], free = tuple(free[: want.gpus]), free[want.gpus :]
        elif stops or not free:
            break
    return starts


ORDERS: dict[str, Callable[[], Order]] = {
    "ours": Ours,
    "FIFO": lambda: fifo,
    "greedy (gflow)": lambda: greedy,
    "Slurm": lambda: slurm,
}


def simulate(given: Sequence[SimJob], begin: Callable[[], Order]) -> Result:
    """Play all jobs to their end; `begin` makes an order, as some remember what they did."""
    order = begin()
    by_id = {job.want.id: job for job in given}
    arrivals = list(given)[::-1]
    ends: list[tuple[float, str]] = []
    held: dict[str, InUse] = {}
    waiting: list[Want] = []
    waits: dict[int, list[float]] = {}
    busy, now, last = 0.0, 0.0, given[-1].want.queued
    while arrivals or ends:
        arrives = arrivals[-1].want.queued if arrivals else float("inf")
        moment = min(arrives, ends[0][0] if ends else float("inf"))
        if moment <= last:
            busy += (moment - now) * sum(len(one.gpus) for one in held.values())
        now = moment
        while arrivals and arrivals[-1].want.queued <= now:
            waiting.append(arrivals.pop().want)
        while ends and ends[0][0] <= now:
            del held[heapq.heappop(ends)[1]]
        for id, uuids in order(list(held.values()), waiting, now).items():
            job = by_id[id]
            limit = job.want.limit
            ends_by = None if limit is None else now + limit
            held[id] = InUse(id, job.want.user, frozenset(uuids), now, ends_by)
            heapq.heappush(ends, (now + job.takes, id))
            waits.setdefault(job.want.gpus, []).append((now - job.want.queued) / 3600)
        waiting = [want for want in waiting if want.id not in held]
    return Result(
        busy / (last * GPUS),
        {size: statistics.median(found) for size, found in sorted(waits.items())},
        {size: max(found) for size, found in sorted(waits.items())},
    )


def tables(count: int, seed: int) -> str:
    given = jobs(count, seed)
    sizes = [size for size, _ in SIZES]
    head = [f"{count} jobs, seed {seed}", "utilization"]
    head += [f"{kind} wait, {size} GPU" for kind in ("median", "worst") for size in sizes]
    rows = []
    for name, begin in ORDERS.items():
        found = simulate(given, begin)
        rows.append([name, f"{found.utilization:.0%}"])
        for waits in (found.median_wait, found.worst_wait):
            rows[-1] += [f"{waits[size]:.2f} h" if size in waits else "–" for size in sizes]
    return table(head, rows)
