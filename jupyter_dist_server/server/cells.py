"""``/jupyter-dist/cells``: the cells that ran on ranks."""

from __future__ import annotations

from ..pools.cell_history import CellHistory
from .base import StatusHandler


class CellsHandler(StatusHandler):
    """The past of all ranks, for the bands of a timeline."""

    async def get(self) -> None:
        """Show when each rank was busy with which cell, in the last hour."""
        await self.require("read")
        history: CellHistory = self.settings["jupyter_dist_cells"]
        self.finish(history.to_json())
