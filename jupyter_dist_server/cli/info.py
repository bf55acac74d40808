"""``jdist info``: the GPUs, and who has them."""

from __future__ import annotations

import argparse
import json

import msgspec

from ..common.pool_folder import our_folders
from ..common.units import format_bytes, format_gpus, name_gpus
from ..gpus.readers.gpu_reader import read_gpus
from ..gpus.used_without_lease import GpuUse, in_use
from ..jobs.leases.lease import GpuLease, holders
from ..jobs.rules.rules import closed_gpus
from ..jobs.schedule.overview import overview
from ..jobs.store.slurm_formats import write_moment
from ..jobs.store.store import Store
from .printing import table


def add_info_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``jdist info``."""
    told = "also how many are free, UUIDs, and the jobs and pools that have them"
    parser.add_argument("-l", "--long", action="store_true", help=told)
    parser.add_argument("--json", action="store_true", help="as JSON")


def run_info(options: argparse.Namespace, store: Store) -> int:
    """Print the GPUs with their load and leaseholders."""
    seen = read_gpus()
    leases = holders(seen.inventory)
    uses = in_use(seen, leases)
    closed = {uuid: one.words for uuid, one in closed_gpus(seen.inventory).items()}
    idle = idle_since(store)
    if options.json:
        gpus = [
            {
                "uuid": gpu.uuid,
                "index": gpu.label,
                "name": gpu.name,
                "utilization": seen.samples.get(gpu.uuid, {}).get("utilization"),
                "memory_used": seen.samples.get(gpu.uuid, {}).get("memory_used"),
                "memory_total": gpu.memory_total,
                "leaseholder": msgspec.to_builtins(leases.get(gpu.uuid)),
                "in_use": str(uses.get(gpu.uuid, "")),
                "closed": closed.get(gpu.uuid, ""),
                "used_by": msgspec.to_builtins(uses.get(gpu.uuid, GpuUse()).processes),
                "idle_since": idle.get(gpu.uuid),
                "ends_by": _ends_by(leases.get(gpu.uuid)),
            }
            for gpu in seen.inventory.gpus
        ]
        parked = [msgspec.to_builtins(one) for one in parked_pools()]
        print(json.dumps({"gpus": gpus, "reason": seen.inventory.reason, "parked": parked}))
        return 0
    if not seen.inventory.gpus:
        print(seen.inventory.reason)
        return 0
    rows = []
    ids = (
        {uuid: row.id for row in overview(store) for uuid in row.gpu_uuids} if options.long else {}
    )
    for gpu in seen.inventory.gpus:
        sample = seen.samples.get(gpu.uuid, {})
        used, load = sample.get("memory_used"), sample.get("utilization")
        who = leases.get(gpu.uuid)
        use, shut = str(uses.get(gpu.uuid, "")), closed.get(gpu.uuid, "")
        if who:
            use = f"{who.user or 'another program'} {who.notebook or ''}".rstrip()
        leaseholder = "; ".join(filter(None, [use, shut])) or "free"
        since, rest = who and who.since, idle.get(gpu.uuid)
        moments = [write_moment(at) if at else "" for at in (since, rest, _ends_by(who))]
        total = gpu.memory_total  # 0 of a GPU that uses the host's
        figure = format_bytes(used) if isinstance(used, int | float) else "unknown"
        memory = f"{figure} / {format_bytes(total)}" if total else figure
        busy = "" if load is None else f"{float(load):.0f} %"
        named = (gpu.name, gpu.uuid) if options.long else (gpu.name,)
        holder = (ids.get(gpu.uuid, ""), leaseholder) if options.long else (leaseholder,)
        rows.append((gpu.label, *named, busy, memory, *moments, *holder))
    names = ["GPU", "NAME", "LOAD", "MEMORY", "SINCE", "IDLE SINCE", "ENDS BY", "LEASEHOLDER"]
    if options.long:
        names.insert(2, "UUID")
        names.insert(-1, "JOBID")
        print(f"{format_gpus(len(rows))}, {len(rows) - len(leases.keys() | uses.keys())} free")
    print(table(names, rows, below=True))
    for pool in parked_pools():
        on = name_gpus([gpu.label for gpu in seen.inventory.gpus if gpu.uuid in pool.gpus])
        print(
            f"Parked since {write_moment(pool.since)}: pool {pool.id} of {pool.notebook or '-'}, "
            f"from {on}, with {format_bytes(pool.nbytes)} in memory."
        )
    return 0


class ParkedPool(msgspec.Struct):
    """A parked pool of this user."""

    id: str
    notebook: str
    gpus: list[str]
    """The UUIDs of the GPUs to which it comes back."""
    since: float
    nbytes: int


def parked_pools() -> list[ParkedPool]:
    """Return the parked pools of this user on this machine."""
    if not any(our_folders()):
        return []
    from ..pools.discovery import find_pools  # not above: it imports asyncio

    found = []
    for pool in find_pools():
        if (said := pool.snapshot).parked:
            gpus = list(dict.fromkeys(rank.gpu.uuid for rank in pool.config.ranks if rank.gpu))
            parked = said.parked
            found.append(ParkedPool(pool.id, said.name, gpus, parked.since, parked.nbytes))
    return found


def _ends_by(lease: GpuLease | None) -> float | None:
    """Return when all holders of a GPU have reached their time limits, if all have one."""
    ends = [one.ends_by for one in (lease, *lease.others)] if lease else []
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def idle_since(store: Store) -> dict[str, float]:
    """Return by UUID since when GPUs of own jobs and of pools have been idle."""
    found: dict[str, float] = {}
    for row in overview(store):
        if row.idle_since:
            found |= dict.fromkeys(row.gpu_uuids, row.idle_since)
        if row.job:
            seen = store.usage(row.job)
            found |= {uuid: one.idle_since for uuid, one in seen.items() if one.idle_since}
    return found
