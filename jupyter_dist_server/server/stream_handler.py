"""``WS /jupyter-dist/stream``: pool states, cells, GPU samples and jobs, pushed to every panel."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.websocket import WebSocketMixin
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from ..common.background_tasks import within
from ..common.errors import DistError
from ..common.patience import patience
from ..pools.pool import Pool
from ..pools.reports.cell_history import CellHistory
from .base_handlers import KernelAuthMixin, read_json
from .gpus.gpu_messages import GpuFeed
from .jobs.job_handler_base import JobHandlerBase
from .jobs.job_news import JobNews
from .mcp.agent_calls import AgentCalls

FRAME_INTERVAL = 0.03
"""Least seconds between two states of one pool."""
TIME_INTERVAL = 10.0
"""Seconds between two `time` frames, by which clients notice a lost connection."""

_WATCHABLE = ("gpus", "pcie", "cells", "agents", "jobs")
"""`"pcie"` means the rates of PCIe and NVLink: each reading takes 20 ms."""
_OTHERS = {"cells", "agents"}
"""These are no metrics of GPUs."""
_KINDS = ("gpus", "history", "usage", "processes")
"""In the order of sending; samples come last, as they need the others."""


class StreamHandler(WebSocketMixin, WebSocketHandler, KernelAuthMixin):
    """One client. A slow one gets fewer, newer states, and needs no more memory."""

    _track_activity = False
    max_message_size = 1 << 16  # a larger one ends the connection

    @ws_authenticated
    async def get(self, *arguments: Any, **options: Any) -> None:
        """Authorize, then upgrade to a WebSocket."""
        await self.require("read")
        self._sees_jobs = await self.may("read", JobHandlerBase.auth_resource)
        await super().get(*arguments, **options)

    def open(self, *arguments: str, **options: str) -> None:
        """Send all pools, then each change."""
        super().open(*arguments, **options)
        self.set_nodelay(True)
        self._changed: dict[str, bool] = {}
        self._mistake: DistError | None = None
        self._news = asyncio.Event()
        settings = self.settings
        feed, cells = settings["jupyter_dist_gpus"], settings["jupyter_dist_cells"]
        calls = settings["jupyter_dist_agent_calls"]
        self._viewer = Viewer(feed, cells, calls, self._news.set)
        self._jobs: JobNews | None = None
        self._stop_listening = self.manager.listen(self._on_change, self._on_removal)
        self._sender = asyncio.create_task(self._send())

    def on_message(self, message: str | bytes) -> None:
        """Read what the client watches."""
        try:
            watch = _read_watch(message)
            self._follow_jobs("jobs" in watch)
            self._viewer.look_at(watch - {"jobs"})
        except DistError as error:
            self._mistake = error
            self._news.set()

    def _follow_jobs(self, on: bool) -> None:
        if on and not self._sees_jobs:
            raise DistError("http_403", "You are not authorized to read jupyter_dist_jobs.")
        if self._jobs and not on:
            self._jobs.close()
            self._jobs = None
        elif on and not self._jobs:
            self._jobs = JobNews(self.settings["jupyter_dist_jobs"], self._news.set)
            self._news.set()

    def on_close(self) -> None:
        """Stop listening."""
        if hasattr(self, "_sender"):
            self._stop_listening()
            self._viewer.close()
            self._follow_jobs(False)
            self._sender.cancel()
        super().on_close()

    def _on_change(self, pool: Pool) -> None:
        self._changed[pool.record.id] = True
        self._news.set()

    def _on_removal(self, pool_id: str) -> None:
        self._changed[pool_id] = False
        self._news.set()

    async def _send(self) -> None:
        try:
            # Otherwise, a page that reconnects early would see the earlier pools disappear.
            with contextlib.suppress(asyncio.TimeoutError):
                adopted = self.settings["jupyter_dist_has_adopted"].wait()
                await within(adopted, patience.node)
            pools = [pool.record.to_json() for pool in self.manager.pools.values()]
            # All times are by our clock; the browser's may differ.
            first = {"type": "pools", "pools": pools, "time": time.time()}
            await self.write_message(json.dumps(first))
            loop = asyncio.get_running_loop()
            due = loop.time() + TIME_INTERVAL
            while True:
                alarm = loop.call_at(due, self._news.set)
                await self._news.wait()
                alarm.cancel()
                await asyncio.sleep(FRAME_INTERVAL)  # ranks go busy one by one: one frame for all
                self._news.clear()
                changed, self._changed = self._changed, {}
                mistake, self._mistake = self._mistake, None
                # Awaiting each write makes a slow client fall behind here, not in a buffer.
                for pool_id in changed:
                    await self.write_message(json.dumps(self._frame(pool_id)))
                if mistake:
                    await self.write_message(json.dumps({"type": "error"} | mistake.to_json()))
                for frame in await self._viewer.take():
                    await self.write_message(frame)
                for frame in await self._jobs.take() if self._jobs else ():
                    await self.write_message(frame)
                if loop.time() >= due:
                    await self.write_message(json.dumps({"type": "time", "time": time.time()}))
                    due = loop.time() + TIME_INTERVAL
        except WebSocketClosedError:
            self.on_close()
        except Exception:
            self.log.exception("The stream failed")
            self.close(1011, "The stream failed. See the server's log.")

    def _frame(self, pool_id: str) -> dict[str, Any]:
        if pool := self.manager.pools.get(pool_id):
            return {"type": "pool", "pool": pool.record.to_json()}
        return {"type": "pool_removed", "id": pool_id}


def _read_watch(message: str | bytes) -> frozenset[str]:
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
            'Send {"watch": ["gpus"]}; there are "pcie", "cells", "agents" and "jobs" too.',
            field="watch",
        )
    return frozenset(map(str, watch))


class Viewer:
    """What one client watches, and which versions of it it has been sent.

    There is no queue: frames are made when the client is ready to read them. `news` is called when
    there may be new ones.
    """

    def __init__(
        self, feed: GpuFeed, cells: CellHistory, calls: AgentCalls, news: Callable[[], None]
    ) -> None:
        self._feed = feed
        self._cells = cells
        self._calls = calls
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
        if metrics := watch - _OTHERS:
            # Before the former interest ends, so that nothing is stopped in between.
            want = self._feed.telemetry.want("gpus", *(metrics - {"gpus"}))
            self._releases = [want, self._feed.listen(self._news)]
        if "agents" in watch:
            self._releases.append(self._calls.listen(self._news))
        for release in former:
            release()
        self._news()

    async def take(self) -> list[bytes]:
        """Return the new frames."""
        news: dict[str, CellHistory | AgentCalls] = {"cells": self._cells, "agents": self._calls}
        said = [frame for kind, source in news.items() for frame in self._news_of(kind, source)]
        return [*said, *await self._gpu_news()]

    def _news_of(self, kind: str, source: CellHistory | AgentCalls) -> list[bytes]:
        seen, version = self._seen.get(kind), source.version
        if kind not in self._watch or seen == version:
            return []
        self._seen[kind] = version
        news = {"type": kind, "complete": seen is None, kind: source.since(seen or 0)}
        return [msgspec.json.encode(news)]

    async def _gpu_news(self) -> list[bytes]:
        """Return the new frames about GPUs, which clients share."""
        watch, frames = self._watch, self._feed.frames
        if "gpus" not in frames or not watch - _OTHERS:
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
