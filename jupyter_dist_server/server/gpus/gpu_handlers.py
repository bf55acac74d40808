"""``/jupyter-dist/gpus``: the GPUs, their metrics, and their history for charts or as a file."""

from __future__ import annotations

import asyncio
import copy
import math
import time
from contextlib import suppress
from dataclasses import replace

from tornado import web
from tornado.iostream import StreamClosedError

from ...common.background_tasks import within
from ...common.errors import DistError
from ...gpus.export_formats import Line, csv_line, csv_title, export_lines, json_line
from ...gpus.history import History
from ..base_handlers import NDJSON, StatusHandler
from .gpu_messages import GpuFeed
from .history_query import (
    Question,
    check_order,
    history_pieces,
    read_gpus,
    read_metrics,
    read_step,
    read_time,
)


class GpuHandler(StatusHandler):
    """Base of the handlers of GPUs."""

    @property
    def feed(self) -> GpuFeed:
        """What the server knows of GPUs."""
        feed: GpuFeed = self.settings["jupyter_dist_gpus"]
        return feed

    async def read_question(self) -> Question:
        """Read ``since``, ``until``, ``gpu`` and ``metrics``."""
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


class GpusHandler(GpuHandler):
    @web.authenticated
    async def get(self) -> None:
        """List the GPUs, or say why there is none, with the newest samples if there are any."""
        await self.require("read")
        self.finish(await self.feed.overview())


class GpuHistoryHandler(GpuHandler):
    @web.authenticated
    async def get(self) -> None:
        """Return ``?since=SECONDS&until=SECONDS&step=SECONDS&gpu=INDEX&metrics=NAME,NAME``."""
        await self.require("read")
        step = read_step(self.get_query_argument("step", None))
        question = await self.read_question()
        self.feed.telemetry.keep_alive()
        self.set_header("Content-Type", "application/json")
        with suppress(StreamClosedError):
            self.write("{")
            async for piece in history_pieces(self.feed.telemetry.history, question, step):
                await self.send(piece)
            await self.finish("}")


class GpuExportHandler(GpuHandler):
    """Base of the exports."""

    async def export(self, line: Line, content_type: str, file: str) -> None:
        """Return ``?since=SECONDS&until=SECONDS&gpu=INDEX&metrics=NAME,NAME&follow=1``."""
        await self.require("read")
        text = self.get_query_argument("follow", "0")
        if text not in ("0", "1"):
            raise DistError("bad_request", f"follow must be 0 or 1, not {text}.", field="follow")
        follow = text == "1"
        question = await self.read_question()
        if follow and question.until < math.inf:
            message = "“until” and “follow” cannot be used together."
            raise DistError("bad_request", message, "Omit one of them.", field="until")
        telemetry = self.feed.telemetry
        telemetry.keep_alive()
        news = self.gone  # one event for both, as both wake the loop below
        ends = [telemetry.want("gpus"), telemetry.listen(lambda _: news.set())]
        self.set_header("Content-Type", content_type)
        self.set_header("Content-Disposition", f'attachment; filename="{file}"')
        told = copy.deepcopy(telemetry.history)  # it goes on while we send
        try:
            with suppress(StreamClosedError):
                await self.send(csv_title(question.metrics) if line is csv_line else "")
                if follow:
                    question = replace(question, until=_complete(told))
                for piece in export_lines(line, told, telemetry.all_gpus, **vars(question)):
                    await self.send(piece)
                while follow:
                    with suppress(asyncio.TimeoutError):  # a row may be complete without news
                        await within(news.wait(), told.step)
                    news.clear()
                    kept = telemetry.history
                    since = max(question.until, question.since or 0.0)
                    question = replace(question, since=since, until=_complete(kept))
                    lines = "".join(export_lines(line, kept, telemetry.all_gpus, **vars(question)))
                    await self.send(lines)  # even if empty: this notices that the client has left
                await self.finish(set_content_type=content_type)
        finally:
            for end in ends:
                end()


def _complete(history: History) -> float:
    """Return until when rows are complete: other nodes add their samples to the newest one."""
    end = history.end
    return end if time.time() < end + history.step else math.nextafter(end, math.inf)


class GpuCsvHandler(GpuExportHandler):
    @web.authenticated
    async def get(self) -> None:
        """Return CSV as ``nvidia-smi`` writes it."""
        await self.export(csv_line, "text/csv", "gpus.csv")


class GpuLinesHandler(GpuExportHandler):
    @web.authenticated
    async def get(self) -> None:
        """Return one JSON object per line."""
        await self.export(json_line, NDJSON, "gpus.jsonl")
