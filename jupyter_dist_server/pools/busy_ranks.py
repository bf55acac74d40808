"""Which ranks of a pool are busy, and with which cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..client.ranks.watch_busy import Watcher, rank_states
from ..common.protocol.pool_record import PoolRecord


@dataclass(eq=False)
class Activity:
    """Follows the ranks of one pool; `changed` is called when a rank has become busy or idle."""

    _record: PoolRecord
    _changed: Callable[[], None]
    _watcher: Watcher | None = None

    async def begin(self) -> None:
        """Follow the present ranks; return when no change can be missed."""
        new = Watcher(Path(self._record.folder), self._note)
        old, self._watcher = self._watcher, new
        if old:
            await old.close()
        await new.ready(rank for rank in self._living() if rank < new.world_size)

    async def catch_up(self) -> None:
        """Ask the ranks of a pool that was found running: their cells may have begun long ago."""
        states = await rank_states(Path(self._record.folder), self._living())
        for rank, said in states.items():
            self._note(rank, said.state, said.cell, said.cell_id, said.msg_id, said.since)

    async def close(self) -> None:
        """Stop following them."""
        if self._watcher:
            await self._watcher.close()
        self._watcher = None

    def _living(self) -> list[int]:
        return [rank.rank for rank in self._record.ranks if rank.state != "dead"]

    def _note(
        self,
        rank: int,
        state: str,
        cell: int | None,
        cell_id: str | None,
        msg_id: str | None,
        since: float | None = None,
    ) -> None:
        if rank >= len(self._record.ranks):
            return  # of a node that the pool has been left without
        if self._record.ranks[rank].note_activity(state, cell, cell_id, msg_id, since):
            self._changed()
