"""``/jupyter-dist/jobs/ID/log`` and ``/lines``: the output of a job, in pieces of limited size."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, closing, suppress
from typing import Any

from tornado import web
from tornado.iostream import StreamClosedError

from ...jobs.job_command import log_paths
from ...jobs.job_control import check_one
from ...jobs.log_reader import LineReader, LogReader, text_of
from ...jobs.select_jobs import select
from ...jobs.store.states import ENDED
from ...jobs.store.store import Store
from ...jobs.store.store_folder import store_folder
from ..base_handlers import NDJSON
from .job_handler_base import JobHandlerBase, in_store
from .job_news import JobFeed


class JobLogHandler(JobHandlerBase):
    @web.authenticated
    async def get(self, job: str) -> None:
        """Return output from ``?offset=BYTES&error=1``; with ``follow=1`` a line for each piece."""
        await self.require("read")
        offset, error = self.byte_offset("offset"), self.flag("error")
        found = await in_store(lambda store: check_one(select(store, [job])))
        log = LogReader(log_paths(found)[error], offset or 0)
        if self.flag("follow"):
            await self._follow(found.id, log, error)
        else:
            self.finish(await in_store(lambda store: _read(store, found.id, log, error)))

    async def _follow(self, id: int, log: LogReader, error: bool) -> None:
        feed: JobFeed = self.settings["jupyter_dist_jobs"]
        news = self.gone  # one event for both, as both wake the loop below
        watched = ""
        self.set_header("Content-Type", NDJSON)
        with suppress(StreamClosedError), ExitStack() as watches:
            watches.enter_context(feed.watch(store_folder() / "running", news.set))
            while True:
                news.clear()
                folder = os.path.dirname(log.path)
                if folder != watched and os.path.isdir(folder):
                    watched = folder
                    watches.enter_context(feed.watch(folder, news.set))
                piece = await in_store(lambda store: _read(store, id, log, error))
                has_ended = piece["state"] in ENDED
                if piece["text"] or has_ended or piece["replaced"]:
                    self.write(json.dumps(piece) + "\n")
                await self.flush()  # this also notices that the client has left
                if piece["text"]:
                    continue
                if has_ended:
                    break
                await news.wait()
            await self.finish(set_content_type=NDJSON)


def _read(store: Store, id: int, log: LogReader, error: bool) -> dict[str, Any]:
    job = store.get(id)  # before its output, which is complete if the job has ended
    log.path = log_paths(job)[error]  # it may have been renamed while it waited
    place = max(0, log.place)
    told = {"offset": place, "next": place, "size": 0, "replaced": False, "text": ""}
    if job.has_output and (piece := log.read()):
        text, log.place = text_of(piece)
        told |= {"offset": piece.start, "next": log.place, "size": piece.size}
        told |= {"replaced": piece.replaced, "text": text}
    return told | {"state": job.state}


class JobLinesHandler(JobHandlerBase):
    @web.authenticated
    async def get(self, job: str) -> None:
        """Return at most 64 KiB of whole lines.

        The query is ``?offset=BYTES``, ``?before=BYTES``, or ``?offset=BYTES&find=TEXT``.
        """
        await self.require("read")
        offset, before = self.byte_offset("offset"), self.byte_offset("before")
        find, error = self.get_query_argument("find", ""), self.flag("error")

        def look(store: Store) -> dict[str, Any]:
            found = check_one(select(store, [job]))
            path = log_paths(found)[error] if found.has_output else "/dev/null"
            with closing(LineReader(path)) as log:
                if find:
                    lines = log.find(find, offset or 0)
                else:
                    lines = log.after(offset or 0) if before is None else log.before(before)
                told = {"size": log.size, "state": found.state, "found": lines is not None}
                if lines is None:
                    return told | {"offset": 0, "next": 0, "text": ""}
                text = lines.data.decode(errors="replace")
                return told | {"offset": lines.start, "next": lines.end, "text": text}

        self.answer(json.dumps(await in_store(look)))
