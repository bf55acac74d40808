"""``/jupyter-dist/``: a small read-only page for browsers without JupyterLab."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import PurePosixPath
from typing import Any

from tornado import web

from ..common.errors import DistError
from ..common.protocol.pool_record import PoolRecord
from ..common.rank_specs import format_ranks
from ..common.units import format_bytes, gpus_of, name_gpus
from ..gpus.gpu_state import GpuState
from ..gpus.inventory import Gpu
from ..gpus.used_without_lease import in_use
from ..jobs.leases.lease import GpuLease, holders
from ..jobs.rules.rules import closed_gpus
from ..jobs.schedule.overview import Row, overview
from ..jobs.store.slurm_formats import write_moment
from ..jobs.store.states import PENDING
from .base_handlers import KernelAuthMixin
from .gpus.gpu_messages import GpuFeed
from .jobs.job_handler_base import JobHandlerBase, in_store

_MOST = 200
"""Rows of the queue that are shown."""

_STYLE = """
:root { color-scheme: light dark; }
html { background: light-dark(#fff, #1b1d20); color: light-dark(#1f2328, #e6e8eb); }
body { margin: 0 auto; padding: 12px 16px; max-width: 720px; font: 15px/1.4 system-ui, sans-serif; }
h1 { font-size: 18px; margin: 4px 0; } h2 { font-size: 15px; margin: 20px 0 4px; }
ul { list-style: none; margin: 0; padding: 0; }
li { padding: 8px 0; border-top: 1px solid #8886; overflow-wrap: anywhere; }
.row { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 12px; }
.quiet { color: light-dark(#5f6368, #a6abb2); font-size: 13px; }
.bad { color: light-dark(#b3261e, #f2938c); }
progress { width: 100%; height: 6px; accent-color: light-dark(#1665c1, #6ea8ef); }
"""


class PageHandler(KernelAuthMixin):
    """Pools, GPUs and the queue, as HTML that reloads itself."""

    @property
    def _track_activity(self) -> bool:
        return False  # an open page must not keep an idle server alive

    @web.authenticated
    async def get(self) -> None:
        """Return the page."""
        await self.require("read")
        feed: GpuFeed = self.settings["jupyter_dist_gpus"]
        telemetry = feed.telemetry
        telemetry.keep_alive()
        stale = trouble = ""
        if telemetry.stale_since is not None:
            since = write_moment(telemetry.stale_since)
            stale = f"No new values since {since}. {telemetry.trouble}"
        found = await feed.inventory()
        leases: dict[str, GpuLease] = {}
        with suppress(DistError):  # then nobody can lease anything here
            leases = await asyncio.to_thread(holders, found)
        elsewhere = [gpu for node in telemetry.nodes.values() for gpu in node.gpus]
        everywhere = replace(found, gpus=(*found.gpus, *elsewhere))
        rows: list[Row] = []
        if await self.may("read", JobHandlerBase.auth_resource):
            try:
                state = await feed.state.get()
                rows = await in_store(lambda store: overview(store, state, start=True))
            except DistError as error:
                trouble = f"{error.message} {error.hint}"
        pools = [pool.record for pool in self.manager.live()]
        known = {pool.id for pool in pools}
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        self.finish(
            html(
                pools,
                replace(telemetry.state, inventory=everywhere),
                leases | feed.leased_elsewhere(),
                [row for row in rows if row.id not in known or row.state == PENDING],
                trouble,
                stale,
            )
        )

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer with Jupyter's own error page."""
        super(KernelAuthMixin, self).write_error(status_code, **options)


def html(
    pools: Sequence[PoolRecord],
    gpus: GpuState,
    leases: Mapping[str, GpuLease],
    queue: Sequence[Row],
    trouble: str = "",
    stale: str = "",
) -> str:
    """Return the page; `trouble` says why the queue is unknown, `stale` why samples are old."""
    found = gpus.inventory
    labels = {gpu.uuid: gpu.label for gpu in found.gpus if not gpu.node}
    users = {uuid: str(use) for uuid, use in in_use(gpus, leases).items()}
    users |= {uuid: _lessee(lease) for uuid, lease in leases.items()}
    with suppress(DistError):  # as above
        for uuid, one in closed_gpus(found).items():
            users[uuid] = f"{users.get(uuid, 'not leased')}; {one.words}"
    items = (_gpu(gpu, gpus, users.get(gpu.uuid, "not leased")) for gpu in found.gpus)
    rows = (_row(row, labels) for row in queue[:_MOST])
    title = f"Ranks &amp; GPUs on {escape(socket.gethostname())}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="refresh" content="10"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>{title}</h1>"
        f'<p class="quiet">At {time.strftime("%H:%M:%S")}, updated every 10 s.</p>'
        f"{_section('Pools', map(_pool, pools), 'No pool is running.')}"
        f"{_section('GPUs', items, found.reason or 'There is no GPU.', stale)}"
        f"{_section('Queue', rows, trouble or 'Nothing else runs or waits.')}</main></body></html>"
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
    is_parked = pool.state == "SUSPENDED"
    if dead and pool.state.has_ranks:
        state = f"rank{'s' * (len(dead) > 1)} {format_ranks(dead)} died"
    elif pool.state == "RUNNING":
        state = "busy" if busy else f"idle since {write_moment(max(r.since for r in pool.ranks))}"
    elif is_parked:
        state = f"parked since {write_moment(pool.parked.since)}" if pool.parked else "parked"
    cells = sorted({rank.cell for rank in busy if rank.cell is not None})
    facts = [
        f"{pool.world_size} rank{'s' * (pool.world_size != 1)}" if pool.world_size else "",
        "" if is_parked else gpus_of(pool.ranks),
        f"{format_bytes(pool.parked.nbytes)} in memory" if is_parked and pool.parked else "",
        f"cell {', '.join(f'[{cell}]' for cell in cells)}" if cells else "",
        f"started {write_moment(pool.started)}" if pool.started else "",
        pool.progress.reason or (pool.parking.reason if pool.parking else ""),
    ]
    return _item(PurePosixPath(pool.name).name or pool.id, state, facts, bool(dead))


def _gpu(gpu: Gpu, gpus: GpuState, user: str) -> str:
    sample = gpus.samples.get(gpu.uuid, {})
    load, used = sample.get("utilization"), sample.get("memory_used")
    label = f"{gpu.node}: GPU {gpu.label}" if gpu.node else f"GPU {gpu.label}"
    memory = format_bytes(gpu.memory_total) if gpu.memory_total else ""
    if isinstance(used, int | float):
        memory = f"{format_bytes(used)} of {memory}"
    if not isinstance(load, int | float):
        return _item(label, "", (gpu.name, memory, user))
    bar = f'<progress max="100" value="{load:g}" aria-label="{escape(label)}: utilization">'
    return f"{_item(label, f'{load:g} %', (gpu.name, memory, user))}{bar}</progress>"


def _lessee(lease: GpuLease) -> str:
    if lease.user is None:
        return "locked by another program"
    notebook = PurePosixPath(lease.notebook or "").name
    who = f"leased by {lease.user}" + (f", {notebook}" if notebook else "")
    return f"{who}, idle since {write_moment(lease.idle_since)}" if lease.idle_since else who


def _row(row: Row, labels: dict[str, str]) -> str:
    names = [labels.get(uuid, uuid) for uuid in row.gpu_uuids]
    waits = row.state == PENDING
    when = "" if waits or row.since is None else f"since {write_moment(row.since)}"
    if row.expected:
        word = "by" if row.expected.certain else "about"
        when = f"{word} {write_moment(row.expected.start)}"
    idle = f"idle since {write_moment(row.idle_since)}" if row.idle_since else ""
    gpus = name_gpus(names) if names else f"{row.gpus} GPUs"
    state = f"waits ({row.reason})" if waits and row.reason else row.state.lower()
    title = f"{row.id} {row.name}".strip() or "another program"
    return _item(title, state, (row.user, gpus, when, idle, row.detail))
