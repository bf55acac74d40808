"""One client of the stream: its subscriptions, and what it was sent."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..common.errors import DistError
from ..pools.reports.cell_history import CellHistory
from .base_handlers import read_json
from .gpus.gpu_messages import GpuFeed

_WATCHABLE = ("gpus", "pcie", "cells", "jobs")
"""`"pcie"` means the rates of PCIe and NVLink: each reading takes 20 ms."""
_KINDS = ("gpus", "history", "usage", "processes")
"""In the order of sending; samples come last, as they need the others."""


def read_watch(message: str | bytes) -> frozenset[str]:
    """Decode a message of a client: the names that it watches."""
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
    """What one client watches, and which versions of it it has been sent.

    There is no queue: frames are made when the client is ready to read them. `news` is called when
    there may be new ones.
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
        """Change what is watched; all of it is sent from the beginning."""
        if watch == self._watch:
            return
        former, self._releases = self._releases, []
        self._watch = watch
        self._seen, self._tick = {}, 0
        if metrics := watch - {"cells"}:
            # Before the former interest ends, so that nothing is stopped in between.
            want = self._feed.telemetry.want("gpus", *(metrics - {"gpus"}))
            self._releases = [want, self._feed.listen(self._news)]
        for release in former:
            release()
        self._news()

    async def take(self) -> list[bytes]:
        """Return the new frames."""
        return [*self._cell_news(), *await self._gpu_news()]

    def _cell_news(self) -> list[bytes]:
        seen, version = self._seen.get("cells"), self._cells.version
        if "cells" not in self._watch or seen == version:
            return []
        self._seen["cells"] = version
        news = {"type": "cells", "complete": seen is None, "cells": self._cells.since(seen or 0)}
        return [msgspec.json.encode(news)]

    async def _gpu_news(self) -> list[bytes]:
        """Return the new frames about GPUs, which clients share."""
        watch, frames = self._watch, self._feed.frames
        if "gpus" not in frames or not watch - {"cells"}:
            return []
        links = "pcie" in watch
        history = b""
        if "history" not in self._seen:
            history = await self._feed.history(links)
            if watch != self._watch:
                return []  # it watches something else now
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
        """Stop watching."""
        self.look_at(frozenset())
