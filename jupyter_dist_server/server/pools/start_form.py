"""``/jupyter-dist/start-schema``: the form for the start of a pool."""

from __future__ import annotations

import asyncio
import os

from tornado import web

from ...common.background_tasks import Tasks
from ...common.patience import patience
from ...gpus.used_without_lease import in_use
from ...jobs.leases.lease import holders
from ...jobs.rules.rules import closed_gpus
from ...placement.ranks_to_gpus import allowed
from ...placement.request_schema import Cluster, cluster_around, start_schema
from ...placement.requests.request import PoolRequest
from ..gpus.gpu_handlers import GpuHandler


class StartSchemaHandler(GpuHandler):
    @web.authenticated
    async def get(self) -> None:
        """Return the schema; the default number of ranks is the number of free GPUs."""
        await self.require("read")
        state = await self.feed.state.get()
        found = allowed(PoolRequest(), state.inventory)
        leases = await asyncio.to_thread(holders, found)
        closed = await asyncio.to_thread(closed_gpus, found)
        taken = {*leases, *in_use(state, leases), *(uuid for uuid in closed if closed[uuid].now)}
        free = sum(gpu.uuid not in taken for gpu in found.gpus)
        timeout = self.settings["jupyter_dist_start_timeout"]
        cluster = await self.settings["jupyter_dist_cluster"].answer()
        self.finish(start_schema(found, free, timeout, cluster))


class ClusterQuestion:
    """Asks for the nodes of the server's cluster, once for all forms that are opened meanwhile."""

    def __init__(self, engine: str, tasks: Tasks) -> None:
        self._engine = engine
        self._tasks = tasks
        self._asking: asyncio.Task[Cluster | None] | None = None

    async def answer(self) -> Cluster | None:
        """Return the cluster; `None` if there is none, or if it does not answer in time."""
        if self._asking is None or self._asking.done():
            question = asyncio.to_thread(cluster_around, os.environ, self._engine)
            self._asking = self._tasks.add(question)
        asking = self._asking
        done, _ = await asyncio.wait({asking}, timeout=patience.busy_answer)
        return asking.result() if done else None
