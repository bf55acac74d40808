"""One client of the stream: its subscriptions, and what it was sent."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..common.errors import DistError
from ..pools.reports.cell_history import CellHistory
from .gpus.gpu_messages import GpuFeed
from .request_bodies import read_json

_WATCHABLE = ("gpus", "pcie", "cells", "jobs")
"""What a client can look at. `"pcie"` is the rates of PCIe and NVLink: each reading takes 20 ms."""
_KINDS = ("gpus", "history", "usage", "processes")
"""In the order in which a client is told; samples come last, as they need the others."""


def read_watch(message: str | bytes) -> frozenset[str]:
    """Return what a client says that it looks at.

    Raises
    ------
    DistError
        If it says something else.
    """
    try:
        said = read_json(message)
        watch = said["watch"] if set(said) == {"watch"} else None
    except (ValueError, TypeError, KeyError):
        watch = None
    if not isinstance(watch, list) or not set(map(str, watch)) <= set(_WATCHABLE):
        raise DistError(
            "bad_request",
            "A message to the stream must be a JSON object with “watch” only.",
            'Send {"watch": ["gpus"]}, also with "pcie", "cells" or "jobs", or {"watch": []}.',
            field="watch",
        )
    return frozenset(map(str, watch))


class Viewer:
    """What one client looks at, and how much of that it has seen.

    It keeps numbers and no messages: what a client gets is made up when it is ready to read.

    Parameters
    ----------
    feed : GpuFeed
        Where the messages on GPUs come from.
    cells : CellHistory
        The cells; they change with their pools, of whose changes the client is told anyway.
    news : callable
        Called when there may be something new.
    """

    def __init__(self, feed: GpuFeed, cells: CellHistory, news: Callable[[], None]) -> None:
        self._feed = feed
        self._cells = cells
        self._news = news
        self._watch: frozenset[str] = frozenset()
        self._releases: list[Callable[[], None]] = []
        self._seen: dict[str, int] = {}
        self._tick = 0

    def look_at(self, watch: frozenset[str]) -> None:
        """Look at other things from now on; what is new to look at is told from the beginning."""
        if watch == self._watch:
            return
        former, self._releases = self._releases, []
        self._watch = watch
        self._seen, self._tick = {}, 0
        if metrics := watch - {"cells"}:
            # Before the former interest is released, or everything might be stopped in between.
            want = self._feed.telemetry.want("gpus", *(metrics - {"gpus"}))
            self._releases = [want, self._feed.listen(self._news)]
        for release in former:
            release()
        self._news()

    async def take(self) -> list[bytes]:
        """Return what this client has not been told yet."""
        return [*self._cell_news(), *await self._gpu_news()]

    def _cell_news(self) -> list[bytes]:
        seen, version = self._seen.get("cells"), self._cells.version
        if "cells" not in self._watch or seen == version:
            return []
        self._seen["cells"] = version
        news = {"type": "cells", "complete": seen is None, "cells": self._cells.since(seen or 0)}
        return [msgspec.json.encode(news)]

    async def _gpu_news(self) -> list[bytes]:
        """Return what is new of the GPUs; the messages are shared with other clients."""
        watch, frames = self._watch, self._feed.frames
        if "gpus" not in frames or not watch - {"cells"}:
            return []
        links = "pcie" in watch
        history = b""
        if "history" not in self._seen:
            history = await self._feed.history(links)
            if watch != self._watch:
                return []  # it looks at something else now, and has news of that
        news = []
        for kind in _KINDS:
            version, frame = (1, history) if kind == "history" else frames.get(kind, (0, b""))
            if version > self._seen.get(kind, 0):
                self._seen[kind] = version
                news.append(frame)
        samples = self._feed.samples
        if samples.tick > self._tick:
            news.append(samples.since(self._tick, links))
            self._tick = samples.tick
        return news

    def close(self) -> None:
        """Look at nothing any more."""
        self.look_at(frozenset())
