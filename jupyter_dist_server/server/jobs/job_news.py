"""News of the queue for one client of the stream, and changes of files that jobs write."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from ...common.errors import DistError
from ...common.files.shared_folder import folder
from ...jobs.file_changes import Wake
from ...jobs.store.attempt import Event
from ...jobs.store.store_folder import store_folder
from .job_handler_base import in_store

_MOST = 1000
"""Events in one frame; more come in further frames."""


class JobFeed:
    """Calls back when something has changed in the folders that anybody watches."""

    def __init__(self) -> None:
        self._wake: Wake | None = None
        self._listeners: dict[object, Callable[[], None]] = {}
        self._folders: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._sees_all = True
        """Every folder is watched; the number of watches is limited."""

    @contextmanager
    def watch(self, folder: Path | str, news: Callable[[], None]) -> Iterator[None]:
        """Call `news` when something changes in a folder, while the block lasts."""
        key, name = object(), str(folder)
        self._listeners[key] = news
        self._folders[name] += 1
        if self._wake is None:
            self._wake = Wake([])
            self._listen()
        if not self._wake.watch(name) and self._sees_all:
            self._sees_all = False
            self._on_change()
        try:
            yield
        finally:
            del self._listeners[key]
            self._folders[name] -= 1
            if not self._folders[name]:
                del self._folders[name]
                self._wake.unwatch(name)
            if not self._listeners:
                self._end()

    def _listen(self) -> None:
        self._timer = None
        if self._wake is None:
            return
        loop = asyncio.get_running_loop()
        if self._wake.descriptor is None or not self._sees_all:
            self._timer = loop.call_later(2.0, self._on_change)
        else:
            loop.add_reader(self._wake.descriptor, self._on_change)

    def _on_change(self) -> None:
        assert self._wake
        self._ignore()
        if self._wake.descriptor is not None:
            self._wake.drain()
        # A pause: a job may write all the time.
        self._timer = asyncio.get_running_loop().call_later(0.1, self._listen)
        for news in list(self._listeners.values()):
            news()

    def _ignore(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._wake and self._wake.descriptor is not None:
            asyncio.get_running_loop().remove_reader(self._wake.descriptor)

    def _end(self) -> None:
        self._ignore()
        if self._wake:
            self._wake.close()
        self._wake = self._timer = None
        self._sees_all = True


class JobNews:
    """Events of the queue for one client; `news` is called when there are new ones."""

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
        """Return the new frames; the first one says only where the events begin."""
        try:
            return await self._take()
        except DistError as error:  # the other news of the stream continue
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
            self._on_change()  # for changes before we watched
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
        """Stop following."""
        self._closed = True
        self._watch.close()


def _frame(seq: int, events: list[Event], pending: int) -> bytes:
    told = {"type": "jobs", "seq": seq, "events": events, "pending": pending}
    return msgspec.json.encode(told)
