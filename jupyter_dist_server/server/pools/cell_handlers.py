"""``/jupyter-dist/cells`` and ``/pools/{id}/lanes``: the cells that ran on ranks."""

from __future__ import annotations

import msgspec

from ...common.errors import DistError
from ...common.protocol.ranks.profile_messages import LanesRequest
from ...pools.reports.cell_history import CellHistory
from ..base_handlers import DistHandler, StatusHandler


class CellsHandler(StatusHandler):
    """The past of all ranks."""

    async def get(self) -> None:
        """Show which cells ran on which ranks, in the last hour."""
        await self.require("read")
        history: CellHistory = self.settings["jupyter_dist_cells"]
        self.finish({"cells": msgspec.to_builtins(history.since())})


class LanesHandler(DistHandler):
    """What the ranks of a pool did when."""

    async def post(self, pool_id: str) -> None:
        """Note it with the cell that was profiled."""
        await self.require("execute")
        pool = self.manager.get(pool_id)
        try:
            told = msgspec.convert(self.body(), LanesRequest)
        except msgspec.ValidationError as error:
            raise DistError("bad_request", f"{error}.", field="ranks") from None
        history: CellHistory = self.settings["jupyter_dist_cells"]
        history.note_lanes(pool.record.id, told.ranks)
        self.finish({})
