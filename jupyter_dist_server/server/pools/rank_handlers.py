"""What the ranks of a pool do and have done: stacks, logs, verdicts, variables and cells."""

from __future__ import annotations

import time

import msgspec
from tornado import web

from ...common.errors import DistError
from ...common.protocol.ranks.profile_messages import LanesRequest
from ...common.rank_specs import check_ranks
from ...placement.requests.field_checks import MAX_SECONDS
from ...pools.reports.cell_history import CellHistory
from ...pools.reports.rank_variables import RankVariables
from ...pools.stack_and_log import log_of, stack_of, verdict_of
from ..base_handlers import DistHandler, StatusHandler
from .pool_handlers import check_rank_list

_MOST_NAMES = 1000


class StackHandler(StatusHandler):
    @web.authenticated
    async def get(self, pool_id: str, rank: str) -> None:
        """Return the stacks of all Python threads of a rank."""
        await self.require("read")
        record, number = self.manager.get(pool_id).record, _read_rank(rank)
        self.finish({"rank": number, "text": await stack_of(record, number)})


class LogHandler(StatusHandler):
    @web.authenticated
    async def get(self, pool_id: str, rank: str) -> None:
        """Return the last lines that a rank wrote to stderr, and its own log."""
        await self.require("read")
        record, number = self.manager.get(pool_id).record, _read_rank(rank)
        self.finish({"rank": number, "lines": await log_of(record, number)})


class VerdictHandler(StatusHandler):
    @web.authenticated
    async def get(self, pool_id: str) -> None:
        """Return why ranks wait, with ``?seconds=10`` only if they have waited for so long."""
        await self.require("read")
        record = self.manager.get(pool_id).record
        seconds = self.seconds("seconds", MAX_SECONDS)
        verdict = await verdict_of(record, time.time() - seconds if seconds else None)
        self.finish({"verdict": None if verdict is None else msgspec.to_builtins(verdict)})


class VariablesHandler(StatusHandler):
    @web.authenticated
    async def get(self, pool_id: str) -> None:
        """List variables without values; small ones are compared."""
        await self.require("read")
        variables: RankVariables = self.settings["jupyter_dist_variables"]
        content = await variables.look(self.manager.get(pool_id))
        self.set_header("Content-Type", "application/json")
        self.finish(content)


class CheckHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Compare variables on all ranks; names may be expressions, so this runs code."""
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


class CellsHandler(StatusHandler):
    @web.authenticated
    async def get(self) -> None:
        """List the cells of the last hour with their ranks."""
        await self.require("read")
        history: CellHistory = self.settings["jupyter_dist_cells"]
        self.finish({"cells": msgspec.to_builtins(history.since())})


class LanesHandler(DistHandler):
    @web.authenticated
    async def post(self, pool_id: str) -> None:
        """Add to a profiled cell what its ranks did when."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        try:
            told = msgspec.convert(self.body(), LanesRequest)
        except msgspec.ValidationError as error:
            raise DistError("bad_request", f"{error}.", field="ranks") from None
        history: CellHistory = self.settings["jupyter_dist_cells"]
        history.note_lanes(pool.record.id, told.ranks)
        self.finish({})


def _read_rank(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise DistError("unknown_rank", f"“{text}” is not a valid rank.", field="ranks")
    return int(text)
