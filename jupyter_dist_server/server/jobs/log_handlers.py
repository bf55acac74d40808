"""``/jupyter-dist/jobs/ID/log``: what a job has printed, in bounded pieces."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass

from tornado.iostream import StreamClosedError

from ...common.errors import DistError
from ...jobs.job_command import log_paths
from ...jobs.job_control import check_one
from ...jobs.log_reader import LogReader, text_of
from ...jobs.select_jobs import select
from ...jobs.store.states import ENDED
from ...jobs.store.store import Store
from ...jobs.store.store_folder import store_folder
from ..base_handlers import NDJSON
from .job_handler_base import JobHandlerBase, in_store
from .queue_changes import JobFeed


@dataclass(frozen=True)
class _Answer:
    """A piece of the output."""

    offset: int
    next: int
    """Where the next piece begins."""
    size: int
    """Of the whole."""
    replaced: bool
    """Whether the file is another one than before."""
    text: str
    state: str
    """Of the job."""


class JobLogHandler(JobHandlerBase):
    """The output of one job."""

    async def get(self, job: str) -> None:
        """Answer ``?offset=BYTES&error=1``; with ``follow=1`` a line for each piece to come."""
        await self.require("read")
        text = self.get_query_argument("offset", "0")
        if not (text.removeprefix("-").isdecimal() and len(text) < 18):
            raise DistError("bad_request", "offset must be a number of bytes.", field="offset")
        error = self.get_query_argument("error", "0") == "1"
        found = await in_store(lambda store: check_one(select(store, [job])))
        log = LogReader(log_paths(found)[error], int(text))
        if self.get_query_argument("follow", "0") == "1":
            await self._follow(found.id, log, error)
        else:
            self.finish(asdict(await in_store(lambda store: _read(store, found.id, log, error))))

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
                if piece.text or piece.state in ENDED or piece.replaced:
                    self.write(json.dumps(asdict(piece)) + "\n")
                await self.flush()  # also tells whether the caller has left
                if piece.text:
                    continue
                if piece.state in ENDED:
                    break
                await news.wait()
            await self.finish(set_content_type=NDJSON)


def _read(store: Store, id: int, log: LogReader, error: bool) -> _Answer:
    job = store.get(id)  # before its output: when it has ended, all is there
    log.path = log_paths(job)[error]  # another one, if it was renamed while it waited
    piece = log.read() if job.has_output else None
    if piece is None:
        place = max(0, log.place)
        return _Answer(place, place, 0, False, "", job.state)
    text, log.place = text_of(piece)
    return _Answer(piece.start, log.place, piece.size, piece.replaced, text, job.state)
