"""What one client of the stream is told of jobs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from contextlib import ExitStack

import msgspec

from ...common.errors import DistError
from ...common.files.shared_folder import folder
from ...jobs.store.attempt import Event
from ...jobs.store.store_folder import store_folder
from .job_handler_base import in_store
from .queue_changes import JobFeed

_MOST = 1000
"""Events in one frame; the others come in further ones."""


class JobNews:
    """Follows the store, and who else waits, for one client; it keeps a number and no events.

    Parameters
    ----------
    feed : JobFeed
        Tells when the store has changed.
    news : callable
        Called when there is something to tell.
    """

    def __init__(self, feed: JobFeed, news: Callable[[], None]) -> None:
        self._feed = feed
        self._news = news
        self._watch = ExitStack()
        self._seen: int | None = None
        self._changed = False
        self._closed = False

    def _on_change(self) -> None:
        self._changed = True
        self._news()

    async def take(self) -> list[bytes]:
        """Return what is new: first only where the events begin, then those since."""
        try:
            return await self._take()
        except DistError as error:  # the other news of the stream go on
            mistake = {"type": "error", "field": "watch"} | error.to_json()
            return [json.dumps(mistake).encode()]

    async def _take(self) -> list[bytes]:
        if self._seen is None:
            self._seen = 0
            seen, pending = await in_store(
                lambda store: (store.last_event(), store.count_pending())
            )
            self._seen = seen
            if self._closed:
                return []
            self._watch.enter_context(self._feed.watch(store_folder() / "running", self._on_change))
            with contextlib.suppress(DistError):  # without it, nobody else is seen anyway
                self._watch.enter_context(self._feed.watch(folder(), self._on_change))
            self._on_change()  # what came before we watched
            return [_frame(seen, [], pending)]
        if not self._changed:
            return []
        self._changed, seen = False, self._seen
        events, pending = await in_store(
            lambda store: (store.events(seen, _MOST), store.count_pending())
        )
        if len(events) == _MOST:
            self._on_change()
        if events:
            self._seen = events[-1].seq
        return [_frame(self._seen, events, pending)]

    def close(self) -> None:
        """Follow nothing any more."""
        self._closed = True
        self._watch.close()


def _frame(seq: int, events: list[Event], pending: int) -> bytes:
    told = {"type": "jobs", "seq": seq, "events": events, "pending": pending}
    return msgspec.json.encode(told)
