"""``/jupyter-dist/pools``: start, show, interrupt, restart and stop pools."""

from __future__ import annotations

import asyncio
from typing import Any

from tornado import web

from ...common.errors import DistError
from ...common.rank_specs import MAX_RANKS
from ...placement.requests.field_checks import MAX_SECONDS, as_integer
from ...placement.requests.request import PoolRequest
from ...pools.pool import Pool
from ..base_handlers import DistHandler, StatusHandler
from ..pools_of_kernels import complete_request

MAX_WAIT = 60.0
"""Seconds that a request may wait for news of a pool."""


def check_rank_list(body: dict[str, Any]) -> list[int] | None:
    """Return the field `ranks`, each rank once; `None` for all ranks."""
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
    @web.authenticated
    async def get(self) -> None:
        """List all pools."""
        await self.require("read")
        pools = [pool.record.to_json() for pool in self.manager.pools.values()]
        self.finish({"pools": pools})

    @web.authenticated
    async def post(self) -> None:
        """Begin to start a pool."""
        await self.require("execute")
        request = PoolRequest.from_json(self.body())
        request = await complete_request(request, self.serverapp, self.settings)
        pool = await self.manager.create(request)
        self.set_header("Location", f"{self.base_url}jupyter-dist/pools/{pool.record.id}")
        accept(self, pool)


class PoolHandler(StatusHandler):
    @web.authenticated
    async def get(self, pool_id: str) -> None:
        """Return a pool, with ``?after=VERSION&wait=SECONDS`` when it has changed."""
        await self.require("read")
        pool = self.manager.get(pool_id)
        try:
            after = int(self.get_query_argument("after", "-1"))
        except ValueError:
            message = "after must be a version number."
            raise DistError("bad_request", message, field="after") from None
        await pool.changed_since(after, self.seconds("wait", MAX_WAIT))
        self.finish(pool.record.to_json())

    @web.authenticated
    async def delete(self, pool_id: str) -> None:
        """Stop a pool, or cancel its start; with ``?wait=1`` answer when nothing of it is left."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        wait = self.seconds("wait", MAX_WAIT)
        stopping = self.settings["jupyter_dist_tasks"].add(pool.stop())
        await (stopping if wait else asyncio.sleep(0))  # at least until the state has changed
        accept(self, pool)


class InterruptHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Interrupt some ranks or, without ``ranks``, stop the cells of all."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        await pool.commands.interrupt(check_rank_list(self.body(("ranks",))))
        accept(self, pool)


class RestartHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Replace some ranks, all, or all except those on lost nodes; their variables are lost."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        body = self.body(("ranks", "without_lost_nodes"))
        ranks, without_lost = check_rank_list(body), body.get("without_lost_nodes", False)
        if not isinstance(without_lost, bool) or (without_lost and ranks):
            message = "without_lost_nodes must be true or false, and true only without ranks."
            raise DistError("bad_request", message, field="without_lost_nodes")
        await pool.commands.restart(ranks, without_lost)
        accept(self, pool)


class ResizeHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Begin to have more or fewer ranks; the variables of those that stay are kept."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        asked = PoolRequest.from_json(self.body(("num_ranks", "wait")))
        if asked.num_ranks is None:
            raise DistError("bad_request", "num_ranks is required, such as 4.", field="num_ranks")
        await pool.resizer.resize(asked.num_ranks, asked.wait)
        accept(self, pool)


class ParkHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Begin to park a pool, or end its wait to be resumed."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        self.body(())
        await pool.parker.park()
        accept(self, pool)


class ResumeHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Begin to bring a parked pool back to its GPUs; or do not park it, see `Parker.resume`."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        self.body(())
        await pool.parker.resume()
        accept(self, pool)


class KillHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Kill some ranks; their variables are lost, and the others keep running."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        ranks = check_rank_list(self.body(("ranks",)))
        if ranks is None:
            raise DistError("bad_request", "ranks is required, such as [2].", field="ranks")
        await pool.commands.kill(ranks)
        accept(self, pool)


class ExtendHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Reset the idle time, and add ``time`` to the time limit."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        seconds = self.body(("time",)).get("time")
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and 0 < seconds <= MAX_SECONDS):
            message = "time must be a positive number of seconds."
            raise DistError("bad_request", message, field="time")
        await pool.commands.extend(seconds)
        accept(self, pool)


def accept(handler: DistHandler, pool: Pool) -> None:
    """Answer 202 with the pool: the change has begun."""
    handler.set_status(202)
    handler.finish(pool.record.to_json())
