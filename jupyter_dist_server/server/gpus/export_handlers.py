"""``/jupyter-dist/gpus/export.csv`` and ``.jsonl``: the GPUs' past as a file, or as it happens."""

from __future__ import annotations

import asyncio
import copy
import math
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace

from tornado.iostream import StreamClosedError

from ...common.errors import DistError
from ...gpus.export_formats import Line, csv_line, csv_title, export_lines, json_line
from ...gpus.history import History
from ..base_handlers import NDJSON
from .gpu_handlers import GpuHandler
from .history_query import Question


class GpuExportHandler(GpuHandler):
    """What both formats share."""

    async def export(
        self,
        line: Line,
        content_type: str,
        file: str,
        title: Callable[[Collection[str] | None], str] = lambda _: "",
    ) -> None:
        """Answer ``?since=SECONDS&until=SECONDS&gpu=INDEX&metrics=NAME,NAME&follow=1``.

        Being asked counts as interest.

        Parameters
        ----------
        line : callable
            Makes a line.
        content_type, file : str
            What the answer is, and how a browser should call it.
        title : callable
            Makes what comes first from the names of the metrics.
        """
        await self.require("read")
        follow = self._read_follow()
        question = await self.read_question()
        if follow and question.until < math.inf:
            raise DistError(
                "bad_request",
                "“until” and “follow” cannot be used together.",
                "Omit one of them.",
                field="until",
            )
        telemetry = self.feed.telemetry
        self.feed.keep_alive.renew()
        news = self.gone  # one event for both, as both wake the loop below
        ends = [telemetry.want("gpus"), telemetry.listen(lambda _: news.set())]
        self.set_header("Content-Type", content_type)
        self.set_header("Content-Disposition", f'attachment; filename="{file}"')
        told = copy.deepcopy(telemetry.history)  # as it is now: it goes on while we send
        try:
            with suppress(StreamClosedError):  # the caller has left, as is usual after `follow`
                await self.send(title(question.metrics))
                if follow:
                    question = replace(question, until=_complete(told))
                for piece in export_lines(line, told, telemetry.all_gpus, **vars(question)):
                    await self.send(piece)
                while follow:
                    with suppress(asyncio.TimeoutError):  # a row may be complete without news
                        await asyncio.wait_for(news.wait(), told.step)
                    news.clear()
                    kept = telemetry.history
                    question = _next(question, kept)
                    lines = "".join(export_lines(line, kept, telemetry.all_gpus, **vars(question)))
                    await self.send(lines)  # also without any: is the caller still there?
                await self.finish(set_content_type=content_type)
        finally:
            for end in ends:
                end()

    def _read_follow(self) -> bool:
        text: str = self.get_query_argument("follow", "0")
        if text not in ("0", "1"):
            raise DistError("bad_request", f"follow must be 0 or 1, not {text}.", field="follow")
        return text == "1"


def _complete(history: History) -> float:
    """Return until when rows are complete: other nodes add their samples to the newest one."""
    end = history.end
    return end if time.time() < end + history.step else math.nextafter(end, math.inf)


def _next(question: Question, history: History) -> Question:
    """Return what is to be told after that."""
    since = max(question.until, question.since or 0.0)
    return replace(question, since=since, until=_complete(history))


class GpuCsvHandler(GpuExportHandler):
    """A table as ``nvidia-smi`` writes it."""

    async def get(self) -> None:
        """Answer CSV."""
        await self.export(csv_line, "text/csv", "gpus.csv", csv_title)


class GpuLinesHandler(GpuExportHandler):
    """All that we know, for programs."""

    async def get(self) -> None:
        """Answer one JSON object a line."""
        await self.export(json_line, NDJSON, "gpus.jsonl")
