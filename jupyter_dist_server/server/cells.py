"""``/jupyter-dist/cells``: the cells that ran on ranks."""

from __future__ import annotations

import msgspec

from ..pools.cell_history import CellHistory
from .base import StatusHandler


class CellsHandler(StatusHandler):
    """The past of all ranks."""

    async def get(self) -> None:
        """Show which cells ran on which ranks, in the last hour."""
        await self.require("read")
        history: CellHistory = self.settings["jupyter_dist_cells"]
        self.finish({"cells": msgspec.to_builtins(history.since())})
