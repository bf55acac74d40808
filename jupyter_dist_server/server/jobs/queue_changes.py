"""What has changed in the queue, and in files that jobs write: told by inotify, never by polls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...jobs.file_changes import Wake

_PAUSE = 0.1
"""Seconds between two calls, at least: a job may write all the time."""
_WITHOUT = 2.0
"""Seconds between two calls where there is no inotify."""


class JobFeed:
    """Calls back when something has changed in the folders that anybody watches."""

    def __init__(self) -> None:
        self._wake: Wake | None = None
        self._listeners: dict[object, Callable[[], None]] = {}
        self._folders: Counter[str] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._sees_all = True
        """Whether every folder could be watched: the number of watches is limited."""

    @contextmanager
    def watch(self, folder: Path | str, news: Callable[[], None]) -> Iterator[None]:
        """Call `news` when something changes in a folder, for as long as the block lasts."""
        key, name = object(), str(folder)
        self._listeners[key] = news
        self._folders[name] += 1
        if self._wake is None:
            self._begin()
        assert self._wake
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

    def _begin(self) -> None:
        self._wake = Wake([])
        self._listen()

    def _listen(self) -> None:
        self._timer = None
        if self._wake is None:
            return
        loop = asyncio.get_running_loop()
        if self._wake.descriptor is None or not self._sees_all:
            self._timer = loop.call_later(_WITHOUT, self._on_change)
        else:
            loop.add_reader(self._wake.descriptor, self._on_change)

    def _on_change(self) -> None:
        assert self._wake
        loop = asyncio.get_running_loop()
        if self._timer:
            self._timer.cancel()
        if self._wake.descriptor is not None:
            loop.remove_reader(self._wake.descriptor)
            self._wake.drain()
        self._timer = loop.call_later(_PAUSE, self._listen)
        for news in list(self._listeners.values()):
            news()

    def _end(self) -> None:
        if self._timer:
            self._timer.cancel()
        if self._wake:
            if self._wake.descriptor is not None:
                asyncio.get_running_loop().remove_reader(self._wake.descriptor)
            self._wake.close()
        self._wake = self._timer = None
        self._sees_all = True
