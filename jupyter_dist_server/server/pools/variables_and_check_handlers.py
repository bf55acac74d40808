"""``/jupyter-dist/pools/{id}/variables`` and ``/check``: what the variables of ranks are."""

from __future__ import annotations

from ...common.errors import DistError
from ...common.rank_specs import check_ranks
from ...pools.reports.rank_variables import RankVariables
from ..base_handlers import DistHandler, StatusHandler
from .pool_handlers import check_rank_list

_MOST_NAMES = 1000


class VariablesHandler(StatusHandler):
    """The variables of a pool's ranks."""

    async def get(self, pool_id: str) -> None:
        """List them, without values; small ones are compared."""
        await self.require("read")
        variables: RankVariables = self.settings["jupyter_dist_variables"]
        content = await variables.look(self.manager.get(pool_id))
        self.set_header("Content-Type", "application/json")
        self.finish(content)


class CheckHandler(DistHandler):
    """Whether variables are the same on all ranks."""

    async def post(self, pool_id: str) -> None:
        """Compare them, however large; names may be expressions, so that this is code that runs."""
        await self.require("execute")
        body = self.body(("names", "ranks"))
        pool = self.manager.get(pool_id)
        names = body.get("names", [])
        is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not is_list or len(names) > _MOST_NAMES:
            message = f"names must be a list of at most {_MOST_NAMES} names."
            raise DistError("bad_request", message, field="names")
        ranks = check_rank_list(body)
        check_ranks(ranks or [], pool.record.world_size)
        variables: RankVariables = self.settings["jupyter_dist_variables"]
        content = await variables.check(pool, names, ranks)
        self.set_header("Content-Type", "application/json")
        self.finish(content)
