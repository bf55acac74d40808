"""``/jupyter-dist/start-schema``: what a pool can be asked for on this machine."""

from __future__ import annotations

import asyncio

from ..jobs.lease import holders
from ..placement.conflicts import taken
from ..placement.request import PoolRequest
from ..placement.request_schema import start_schema
from .gpus.handlers import GpuHandler


class StartSchemaHandler(GpuHandler):
    """The form that a start is asked for by."""

    async def get(self) -> None:
        """Describe it, with the number of GPUs that are free now as the number of ranks."""
        await self.require("read")
        found = await self.feed.inventory()
        leases = await asyncio.to_thread(holders, found)
        reasons = taken(PoolRequest(), leases, self.feed.telemetry.processes, ())
        free = sum(gpu.uuid not in reasons for gpu in found.gpus)
        self.finish(start_schema(found, free, self.settings["jupyter_dist_start_timeout"]))
