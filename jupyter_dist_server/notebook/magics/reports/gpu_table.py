"""A table of the GPUs of all nodes of a pool: utilization, memory, leaseholder."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from ....client.agent_link import AgentLink
from ....client.node_gpus import look_at_nodes
from ....common.protocol.pool_record import PoolRecord
from ....common.rank_specs import format_ranks
from ....common.units import format_bytes
from ....gpus.gpu_state import GpuState
from ....gpus.inventory import Gpu
from ....gpus.metrics import Value
from ....gpus.readers.read_gpu_state import read_gpu_state
from ....gpus.used_without_lease import GpuUse, in_use
from ....jobs.leases.lease import GpuLease, holders
from ....jobs.rules.rules import Closed, closed_gpus
from ....placement.unavailable_gpus import clock

_HEAD = ("GPU", "name", "busy", "memory", "temperature", "leaseholder")


async def gpu_rows(record: PoolRecord, agent: AgentLink) -> list[tuple[str, ...]]:
    """Return the rows of the table, its head first; none if the pool has no GPU."""
    if not any(rank.gpu for rank in record.ranks):
        return []
    here, there = await asyncio.gather(read_gpu_state(), look_at_nodes(agent, record.other_nodes))
    leases = await asyncio.to_thread(holders, here.inventory)
    closed = await asyncio.to_thread(closed_gpus, here.inventory)
    rows = list(_rows(record, here, leases, closed))
    if not there:
        return [_HEAD, *rows]
    rows = [(record.ranks[0].node, *row) for row in rows]
    for node, state in there.items():
        rows += [(node, *row) for row in _rows(record, state, {}, {})]
    return [("node", *_HEAD), *rows]


def _rows(
    record: PoolRecord,
    now: GpuState,
    leases: Mapping[str, GpuLease],
    closed: Mapping[str, Closed],
) -> Iterator[tuple[str, ...]]:
    uses = in_use(now, leases)
    for gpu in now.inventory.gpus:
        sample = now.samples.get(gpu.uuid, {})
        yield (
            gpu.label,
            gpu.name,
            _figure(sample.get("utilization"), " %"),
            _memory(gpu, sample.get("memory_used")),
            _figure(sample.get("temperature"), " °C"),
            "; ".join(filter(None, _leaseholders(record, gpu, leases, uses, closed))),
        )
    for sentence in (*now.inventory.problems, *filter(None, [now.inventory.reason])):
        yield "-", sentence, "", "", "", ""


def _figure(value: Value, unit: str) -> str:
    return f"{value:.0f}{unit}" if isinstance(value, int | float) else "–"


def _memory(gpu: Gpu, used: Value) -> str:
    if not gpu.memory_total:  # it shares the host's memory
        return "–"
    first = format_bytes(used) if isinstance(used, int | float) else "–"
    return f"{first} / {format_bytes(gpu.memory_total)}"


def _leaseholders(
    record: PoolRecord,
    gpu: Gpu,
    leases: Mapping[str, GpuLease],
    uses: Mapping[str, GpuUse],
    closed: Mapping[str, Closed],
) -> Iterator[str]:
    ranks = [r.rank for r in record.ranks if r.gpu and r.gpu.uuid == gpu.uuid]
    lease = leases.get(gpu.uuid)
    if ranks:
        yield f"this pool, rank{'s' * (len(ranks) > 1)} {format_ranks(ranks)}"
    for one in [lease, *lease.others] if lease else []:
        if one.pool != record.id:
            yield _lessee(one)
    if gpu.uuid in closed:
        yield closed[gpu.uuid].words
    if not ranks and not lease:
        free = "" if gpu.uuid in closed else "free"
        yield str(uses.get(gpu.uuid, "unknown" if gpu.node else free))


def _lessee(lease: GpuLease) -> str:
    if lease.user is None:
        return "locked by another program"
    name = lease.notebook or f"pool {lease.pool}"
    return f"{name}, user {lease.user}, since {clock(lease.since)}"
