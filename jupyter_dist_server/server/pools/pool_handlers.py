"""``/jupyter-dist/pools`` and what belongs to one pool, ``/jupyter-dist/start-schema``."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from ...common.errors import DistError
from ...common.rank_specs import MAX_RANKS
from ...jobs.leases.lease import holders
from ...placement.conflicts import unavailable
from ...placement.request_schema import start_schema
from ...placement.requests.field_checks import MAX_SECONDS, as_integer
from ...placement.requests.request import PoolRequest
from ...pools.pool import Pool
from ...pools.stack_and_log import log_of, stack_of, verdict_of
from ..base_handlers import DistHandler, StatusHandler
from ..gpus.gpu_handlers import GpuHandler
from ..kernels import complete_request

MAX_WAIT = 60.0
"""Seconds for which a call may wait for news of a pool."""


def check_rank_list(body: dict[str, Any]) -> list[int] | None:
    """Return the field `ranks`, each rank once; `None` is all of them.

    Raises
    ------
    DistError
        If it is not a list of integers.
    """
    ranks = body.get("ranks")
    if ranks is None:
        return None
    if isinstance(ranks, list):
        ranks = list(map(as_integer, ranks[: MAX_RANKS + 1]))
    if not isinstance(ranks, list) or not ranks or any(type(rank) is not int for rank in ranks):
        raise DistError("bad_request", "Ranks must be a list such as [0, 2].", field="ranks")
    if len(ranks) > MAX_RANKS:
        message = f"A list of ranks is limited to {MAX_RANKS} entries."
        raise DistError("bad_request", message, field="ranks")
    return sorted(set(ranks))


class PoolsHandler(StatusHandler):
    """List pools, start one."""

    async def get(self) -> None:
        """List all pools."""
        await self.require("read")
        pools = [pool.record.to_json() for pool in self.manager.pools.values()]
        self.finish({"pools": pools})

    async def post(self) -> None:
        """Begin to start a pool: 202, and a state to follow."""
        await self.require("execute")
        request = PoolRequest.from_json(self.body())
        request = await complete_request(request, self.serverapp, self.settings)
        pool = await self.manager.create(request)
        self.set_status(202)
        self.set_header("Location", f"{self.base_url}jupyter-dist/pools/{pool.record.id}")
        self.finish(pool.record.to_json())


class PoolHandler(StatusHandler):
    """One pool."""

    def _wait_seconds(self) -> float:
        try:
            return min(max(float(self.get_query_argument("wait", "0")), 0.0), MAX_WAIT)
        except ValueError:
            raise DistError(
                "bad_request", "wait must be a number of seconds.", field="wait"
            ) from None

    async def get(self, pool_id: str) -> None:
        """Show a pool, with ``?after=VERSION&wait=SECONDS`` once it has news."""
        await self.require("read")
        pool = self.manager.get(pool_id)
        try:
            after = int(self.get_query_argument("after", "-1"))
        except ValueError:
            raise DistError(
                "bad_request", "after must be a version number.", field="after"
            ) from None
        await pool.changed_since(after, self._wait_seconds())
        self.finish(pool.record.to_json())

    async def delete(self, pool_id: str) -> None:
        """Stop a pool, or cancel its start; with ``?wait=1`` answer when nothing of it is left."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        wait = self._wait_seconds()
        stopping = self.settings["jupyter_dist_tasks"].add(pool.stop())
        await (stopping if wait else asyncio.sleep(0))  # at least until the state has changed
        self.set_status(202)
        self.finish(pool.record.to_json())


class InterruptHandler(DistHandler):
    """Interrupt ranks."""

    async def post(self, pool_id: str) -> None:
        """Interrupt some ranks, or stop what all run: none is left waiting in a collective."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        await pool.commands.interrupt(check_rank_list(self.body(("ranks",))))
        accept(self, pool)


class RestartHandler(DistHandler):
    """Replace ranks."""

    async def post(self, pool_id: str) -> None:
        """Replace some ranks, or all, or all that are on nodes in use; their variables are lost."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        body = self.body(("ranks", "without_lost_nodes"))
        ranks, without_lost = check_rank_list(body), body.get("without_lost_nodes", False)
        if not isinstance(without_lost, bool) or (without_lost and ranks):
            raise DistError(
                "bad_request",
                "without_lost_nodes must be true or false, and true only without ranks.",
                field="without_lost_nodes",
            )
        await pool.commands.restart(ranks, without_lost)
        accept(self, pool)


class KillHandler(DistHandler):
    """Kill ranks."""

    async def post(self, pool_id: str) -> None:
        """Kill some ranks at once; their variables are lost, and the others go on."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        ranks = check_rank_list(self.body(("ranks",)))
        if ranks is None:
            raise DistError("bad_request", "ranks is required, such as [2].", field="ranks")
        await pool.commands.kill(ranks)
        accept(self, pool)


class ExtendHandler(DistHandler):
    """Let a pool run longer."""

    async def post(self, pool_id: str) -> None:
        """Add to its time limit, if ``time`` is given; its idle time is counted anew."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        seconds = self.body(("time",)).get("time")
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and 0 < seconds <= MAX_SECONDS):
            message = "time must be a positive number of seconds."
            raise DistError("bad_request", message, field="time")
        await pool.commands.extend(seconds)
        accept(self, pool)


class StackHandler(StatusHandler):
    """Where a rank's threads are."""

    async def get(self, pool_id: str, rank: str) -> None:
        """Show the stacks of all Python threads of a rank."""
        await self.require("read")
        record, number = self.manager.get(pool_id).record, _read_rank(rank)
        self.finish({"rank": number, "text": await stack_of(record, number)})


class VerdictHandler(StatusHandler):
    """Why the ranks of a pool wait."""

    async def get(self, pool_id: str) -> None:
        """Say it; with ``?seconds=10`` only if they have waited for that long."""
        await self.require("read")
        record = self.manager.get(pool_id).record
        seconds = self._seconds()
        verdict = await verdict_of(record, time.time() - seconds if seconds else None)
        self.finish({"verdict": None if verdict is None else msgspec.to_builtins(verdict)})

    def _seconds(self) -> float:
        try:
            return min(max(float(self.get_query_argument("seconds", "0")), 0.0), MAX_SECONDS)
        except ValueError:
            raise DistError(
                "bad_request", "seconds must be a number of seconds.", field="seconds"
            ) from None


class LogHandler(StatusHandler):
    """What a rank wrote."""

    async def get(self, pool_id: str, rank: str) -> None:
        """Show the last lines that a rank wrote to stderr, and its own log."""
        await self.require("read")
        record, number = self.manager.get(pool_id).record, _read_rank(rank)
        self.finish({"rank": number, "lines": await log_of(record, number)})


class StartSchemaHandler(GpuHandler):
    """The form that a start is asked for by."""

    async def get(self) -> None:
        """Describe it, with the number of GPUs that are free now as the number of ranks."""
        await self.require("read")
        found = await self.feed.inventory()
        leases = await asyncio.to_thread(holders, found)
        reasons = unavailable(PoolRequest(), leases, self.feed.telemetry.processes, ())
        free = sum(gpu.uuid not in reasons for gpu in found.gpus)
        timeout = self.settings["jupyter_dist_start_timeout"]
        cluster = await self.settings["jupyter_dist_cluster"].answer()  # of use without, too
        self.finish(start_schema(found, free, timeout, cluster))


def accept(handler: DistHandler, pool: Pool) -> None:
    """Answer that what was asked for has begun."""
    handler.set_status(202)
    handler.finish(pool.record.to_json())


def _read_rank(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise DistError("unknown_rank", f"“{text}” is not a valid rank.", field="ranks")
    return int(text)
