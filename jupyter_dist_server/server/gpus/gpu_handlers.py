"""``/jupyter-dist/gpus``: the GPUs, their metrics and their history."""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import suppress

from tornado.iostream import StreamClosedError

from ..base_handlers import StatusHandler
from .gpu_messages import GpuFeed
from .history_json import history_pieces
from .history_query import Question, check_order, read_gpus, read_metrics, read_step, read_time


class GpuHandler(StatusHandler):
    """What the handlers of GPUs share."""

    @property
    def feed(self) -> GpuFeed:
        """What the server knows of GPUs."""
        feed: GpuFeed = self.settings["jupyter_dist_gpus"]
        return feed

    async def read_question(self) -> Question:
        """Return what is asked for by ``since``, ``until``, ``gpu`` and ``metrics``.

        Raises
        ------
        DistError
            If the query cannot be understood.
        """
        now = time.time()
        since, until = (
            read_time(field, self.get_query_argument(field, None), now)
            for field in ("since", "until")
        )
        check_order(since, until)
        metrics = read_metrics(self.get_query_arguments("metrics"))
        found = await self.feed.inventory()
        here = {gpu.uuid for gpu in found.gpus}
        elsewhere = [gpu for gpu in self.feed.remembered() if gpu.uuid not in here]
        uuids = read_gpus(self.get_query_arguments("gpu"), found, elsewhere)
        return Question(since, math.inf if until is None else until, uuids, metrics)

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
        """Show ``?since=SECONDS&until=SECONDS&step=SECONDS&gpu=INDEX&metrics=NAME,NAME``.

        Being asked counts as interest.
        """
        await self.require("read")
        step = read_step(self.get_query_argument("step", None))
        question = await self.read_question()
        self.feed.keep_alive.renew()
        self.set_header("Content-Type", "application/json")
        with suppress(StreamClosedError):  # then nobody waits for the rest
            self.write("{")
            async for piece in history_pieces(self.feed.telemetry.history, question, step):
                await self.send(piece)
            await self.finish("}")
