"""The HTML of the small page, from what REST tells."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import PurePosixPath

from ..common.protocol.pool_record import PoolRecord
from ..common.protocol.sampler_messages import GpuProcess
from ..common.rank_specs import format_ranks
from ..common.units import format_bytes, gpus_of, name_gpus
from ..gpus.inventory import Gpu, Inventory
from ..gpus.metrics import Processes, Samples, Value
from ..jobs.leases.lease import GpuLease
from ..jobs.schedule.overview import Row
from ..jobs.schedule.strangers import REAL_MEMORY
from ..jobs.store.slurm_formats import write_moment
from ..jobs.store.states import PENDING

REFRESH = 10
"""Seconds between two loads."""
_MOST = 200
"""Rows of the queue that are shown."""

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1f2328;
  --quiet: #5f6368; --line: #d5d8dc; --bar: #1665c1;
  --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #1b1d20; --text: #e6e8eb; --quiet: #a6abb2; --line: #41454b;
    --bar: #6ea8ef; --bad: #f2938c; }
}
html { background: var(--ground); color: var(--text); }
body { margin: 0 auto; padding: 12px 16px; max-width: 720px; font: 15px/1.4 system-ui, sans-serif; }
h1 { font-size: 18px; margin: 4px 0; } h2 { font-size: 15px; margin: 20px 0 4px; }
ul { list-style: none; margin: 0; padding: 0; }
li { padding: 8px 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.row { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 12px; }
.quiet { color: var(--quiet); font-size: 13px; } .bad { color: var(--bad); }
progress { width: 100%; height: 6px; accent-color: var(--bar); }
"""


def html(
    host: str,
    pools: Sequence[PoolRecord],
    gpus: Inventory,
    nodes: Mapping[str, Inventory],
    samples: Samples | None,
    processes: Processes,
    leases: Mapping[str, GpuLease],
    queue: Sequence[Row],
    trouble: str,
    stale: str = "",
) -> str:
    """Return the page.

    Parameters
    ----------
    host : str
        The machine.
    pools : sequence of PoolRecord
        Of this server.
    gpus : Inventory
        Its GPUs.
    nodes : mapping
        The GPUs of other machines, by node.
    samples : mapping or None
        The newest values; `None` if nobody has looked yet.
    processes : mapping
        Which processes are on the GPUs, by UUID.
    leases : mapping
        Who leases GPUs, by UUID.
    queue : sequence of Row
        What else runs and waits.
    trouble : str
        Why that is not known; empty if it is.
    stale : str
        Since when there are no new values of GPUs, and why; empty if there are.
    """
    labels = {gpu.uuid: gpu.label for gpu in gpus.gpus}
    everywhere = [*gpus.gpus, *(gpu for found in nodes.values() for gpu in found.gpus)]
    listed = (
        _gpu(gpu, (samples or {}).get(gpu.uuid, {}), _whose(gpu.uuid, leases, processes))
        for gpu in everywhere
    )
    parts = [
        _section("Pools", map(_pool, pools), "No pool is running."),
        _section("GPUs", listed, gpus.reason or "There is no GPU.", stale),
        _section(
            "Queue",
            (_row(row, labels) for row in queue[:_MOST]),
            trouble or "Nothing else runs or waits.",
        ),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="refresh" content="{REFRESH}">'
        f"<title>Ranks &amp; GPUs on {escape(host)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>Ranks &amp; GPUs on {escape(host)}</h1>"
        f'<p class="quiet">At {time.strftime("%H:%M:%S")}, updated every {REFRESH} s.</p>'
        f"{''.join(parts)}</main></body></html>"
    )


def _section(title: str, items: Iterable[str], nothing: str, trouble: str = "") -> str:
    listed = "".join(f"<li>{item}</li>" for item in items)
    body = f"<ul>{listed}</ul>" if listed else f'<p class="quiet">{escape(nothing)}</p>'
    first = f'<p class="bad">{escape(trouble)}</p>' if trouble else ""
    return f"<section><h2>{title}</h2>{first}{body}</section>"


def _item(title: str, right: str, facts: Iterable[str], is_bad: bool = False) -> str:
    kind = "bad" if is_bad else "quiet"
    below = " · ".join(escape(fact) for fact in facts if fact)
    return (
        f'<div class="row"><strong>{escape(title)}</strong>'
        f'<span class="{kind}">{escape(right)}</span></div><div class="quiet">{below}</div>'
    )


def _pool(pool: PoolRecord) -> str:
    dead = [rank.rank for rank in pool.ranks if rank.state == "dead"]
    busy = [rank for rank in pool.ranks if rank.state == "busy"]
    state = pool.state.value.lower()
    if dead and pool.state == "RUNNING":
        state = f"rank{'s' * (len(dead) > 1)} {format_ranks(dead)} died"
    elif pool.state == "RUNNING":
        state = "busy" if busy else f"idle since {write_moment(max(r.since for r in pool.ranks))}"
    cells = sorted({rank.cell for rank in busy if rank.cell is not None})
    facts = [
        f"{pool.world_size} rank{'s' * (pool.world_size != 1)}" if pool.world_size else "",
        gpus_of(pool.ranks),
        f"cell {', '.join(f'[{cell}]' for cell in cells)}" if cells else "",
        f"started {write_moment(pool.started)}" if pool.started else "",
        pool.progress.reason or "",
    ]
    return _item(PurePosixPath(pool.name).name or pool.id, state, facts, bool(dead))


def _gpu(gpu: Gpu, sample: Mapping[str, Value], whose: str) -> str:
    load, used = sample.get("utilization"), sample.get("memory_used")
    node = f"{gpu.node}: " if gpu.node else ""
    label = f"{node}GPU {gpu.label}"
    memory = format_bytes(gpu.memory_total) if gpu.memory_total else ""  # it uses the host's
    facts = [
        gpu.name,
        f"{format_bytes(used)} of {memory}" if isinstance(used, int | float) else memory,
        whose,
    ]
    if not isinstance(load, int | float):
        return _item(label, "", facts)
    bar = f'<progress max="100" value="{load:g}" aria-label="{escape(label)}: utilization">'
    return f"{_item(label, f'{load:g} %', facts)}{bar}</progress>"


def _whose(uuid: str, leases: Mapping[str, GpuLease], processes: Processes) -> str:
    if lease := leases.get(uuid):
        return _lessee(lease)
    users = [row for row in processes.get(uuid, []) if (row.memory or 0) > REAL_MEMORY]
    if not users:
        return "not leased"
    return f"used by {'; '.join(dict.fromkeys(map(_process, users)))}"


def _process(row: GpuProcess) -> str:
    if row.command is None:
        return f"a process outside this container (pid {row.pid} on the host)"
    return f"{row.command}, user {row.user}" if row.user else row.command


def _lessee(lease: GpuLease) -> str:
    if lease.user is None:
        return "locked by another program"
    notebook = PurePosixPath(lease.notebook or "").name
    who = f"leased by {lease.user}" + (f", {notebook}" if notebook else "")
    return f"{who}, idle since {write_moment(lease.idle_since)}" if lease.idle_since else who


def _row(row: Row, labels: dict[str, str]) -> str:
    names = [labels.get(uuid, uuid) for uuid in row.gpu_uuids]
    waits = row.state == PENDING
    when = ""
    if row.expected:
        moment = write_moment(row.expected.start)
        when = f"by {moment}" if row.expected.certain else f"about {moment}"
    facts = [
        row.user,
        name_gpus(names) if names else f"{row.gpus} GPUs",
        when,
        "" if waits or row.since is None else f"since {write_moment(row.since)}",
        f"idle since {write_moment(row.idle_since)}" if row.idle_since else "",
        row.detail,
    ]
    state = f"waits ({row.reason})" if waits and row.reason else row.state.lower()
    return _item(f"{row.id} {row.name}".strip() or "another program", state, facts)
