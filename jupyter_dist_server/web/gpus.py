"""``/jupyter-dist/gpus``: what there is, and how busy it is and was."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from tornado.iostream import StreamClosedError

from .base import StatusHandler
from .gpu_feed import GpuFeed
from .gpu_history import history_pieces
from .gpu_query import read_gpus, read_since, read_step


class GpuHandler(StatusHandler):
    """What the handlers of GPUs share."""

    @property
    def feed(self) -> GpuFeed:
        """What the server knows of GPUs."""
        feed: GpuFeed = self.settings["jupyter_dist_gpus"]
        return feed

    async def read_query(self) -> tuple[float | None, list[str]]:
        """Return since when, and the UUIDs of the GPUs that are asked for.

        Raises
        ------
        DistError
            If the query cannot be understood.
        """
        since = read_since(self.get_query_argument("since", None), time.time())
        return since, read_gpus(self.get_query_arguments("gpu"), await self.feed.inventory())

    async def send(self, piece: str) -> None:
        """Send a piece of the answer, and let the event loop do something else.

        Raises
        ------
        tornado.iostream.StreamClosedError
            If the caller has left.
        """
        self.write(piece)
        await self.flush()
        await asyncio.sleep(0)


class GpusHandler(GpuHandler):
    """All GPUs."""

    async def get(self) -> None:
        """List the GPUs, or say why there is none, with the newest samples if there are any."""
        await self.require("read")
        self.finish(await self.feed.overview())


class GpuHistoryHandler(GpuHandler):
    """The past, for charts."""

    async def get(self) -> None:
        """Show ``?since=SECONDS&step=SECONDS&gpu=INDEX``; being asked counts as interest."""
        await self.require("read")
        step = read_step(self.get_query_argument("step", None))
        since, uuids = await self.read_query()
        self.feed.glance.renew()
        self.set_header("Content-Type", "application/json")
        with suppress(StreamClosedError):  # then nobody waits for the rest
            self.write("{")
            async for piece in history_pieces(self.feed.telemetry.history, since, step, uuids):
                await self.send(piece)
            await self.finish("}")
