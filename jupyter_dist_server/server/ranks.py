"""``/jupyter-dist/pools/{id}/kill``, and what belongs to one rank."""

from __future__ import annotations

from ..common.errors import DistError
from ..pools.diagnostics import log_of, stack_of
from .base import DistHandler, StatusHandler
from .pools import accept, check_rank_list


class KillHandler(DistHandler):
    """Kill ranks."""

    async def post(self, pool_id: str) -> None:
        """Kill some ranks at once; their variables are lost, and the others go on."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        ranks = check_rank_list(self.body(("ranks",)))
        if ranks is None:
            raise DistError("bad_request", "Say which ranks to kill, such as [2].", field="ranks")
        await pool.kill(ranks)
        accept(self, pool)


class StackHandler(StatusHandler):
    """Where a rank's threads are."""

    async def get(self, pool_id: str, rank: str) -> None:
        """Show the stacks of all Python threads of a rank."""
        await self.require("read")
        record, number = self.manager.get(pool_id).record, _read_rank(rank)
        self.finish({"rank": number, "text": await stack_of(record, number)})


class LogHandler(StatusHandler):
    """What a rank wrote."""

    async def get(self, pool_id: str, rank: str) -> None:
        """Show the last lines that a rank wrote to stderr, and its own log."""
        await self.require("read")
        record, number = self.manager.get(pool_id).record, _read_rank(rank)
        self.finish({"rank": number, "lines": await log_of(record, number)})


def _read_rank(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise DistError("unknown_rank", f"“{text}” is not a rank.", field="ranks")
    return int(text)
