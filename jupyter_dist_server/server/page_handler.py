"""``/jupyter-dist/``: a small page for whoever has no JupyterLab; it changes nothing."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from tornado import web

from ..common.errors import DistError
from ..jobs.leases.lease import GpuLease, holders
from ..jobs.schedule.overview import Row, overview
from ..jobs.store.slurm_formats import write_moment
from ..jobs.store.states import PENDING
from .base_handlers import KernelAuthMixin
from .gpus.gpu_messages import GpuFeed
from .jobs.job_handler_base import in_store
from .page_html import html

_JOBS = "jupyter_dist_jobs"


class PageHandler(KernelAuthMixin):
    """Pools, GPUs and the queue, as HTML that a browser loads again by itself."""

    @property
    def _track_activity(self) -> bool:
        return False  # a page that is left open must not keep an idle server alive

    @web.authenticated
    async def get(self) -> None:
        """Show how all stands now."""
        await self.require("read")
        feed: GpuFeed = self.settings["jupyter_dist_gpus"]
        feed.keep_alive.renew()
        seen, stale = feed.telemetry, ""
        if seen.stale_since is not None:
            stale = f"No new values since {write_moment(seen.stale_since)}. {seen.trouble}"
        gpus = await feed.inventory()
        leases: dict[str, GpuLease] = {}
        with suppress(DistError):  # nobody can lease anything here
            leases = await asyncio.to_thread(holders, gpus)
        leases |= feed.leased_elsewhere()
        live = {pool.record.id for pool in self.manager.live()}  # one may end meanwhile
        rows: list[Row] = []
        trouble = ""
        if await self.may("read", _JOBS):
            try:
                state = await feed.state.get()
                rows = await in_store(lambda store: overview(store, state, start=True))
            except DistError as error:
                trouble = f"{error.message} {error.hint}"
        pools = [pool.record for pool in self.manager.live()]
        live.update(pool.id for pool in pools)
        queue = [row for row in rows if row.id not in live or row.state == PENDING]
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Cache-Control", "no-store")
        on_gpus = (gpus, seen.nodes, seen.latest, seen.processes, leases)
        self.finish(html(socket.gethostname(), pools, *on_gpus, queue, trouble, stale))

    def write_error(self, status_code: int, **options: Any) -> None:
        """Answer people with Jupyter's own page of errors."""
        super(KernelAuthMixin, self).write_error(status_code, **options)
