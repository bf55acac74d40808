"""The pool that this notebook uses, and what it does there: run, restart, interrupt, stop."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ...common.protocol.pool_record import PoolRecord
from ...common.protocol.ranks.profile_messages import RankLanes
from ...common.protocol.ranks.rank_messages import RankStatus
from ...common.rank_specs import parse_ranks
from ..cells.cell import Cell
from ..cells.cell_options import Options
from ..scripts.ran_cells import RanCells
from .find_or_start_pool import ConnectedPool
from .pool_owner import no_pool, with_last_lines


class CurrentPool(ConnectedPool):
    """What magics and the Python API do with the notebook's pool."""

    def __init__(self) -> None:
        super().__init__()
        self._cells = 0
        self.ran = RanCells()

    def stop(self) -> tuple[PoolRecord, bool]:
        """Stop the pool; if it is another notebook's, leave it to that one.

        Returns
        -------
        tuple
            The pool as it was, and whether it was stopped.

        Raises
        ------
        DistError
            If none is running.
        """
        record = self.attach()
        if record is None:
            raise no_pool()
        return record, self._end(record)

    def restart(self, ranks: str | None, progress: Callable[[PoolRecord], None]) -> PoolRecord:
        """Replace ranks, and wait until they are ready.

        All are replaced if none is named; with `None`, the pool goes on without lost nodes.

        Raises
        ------
        DistError
            If one of them does not start; the others are ready.
        """
        record, _ = self.require()
        chosen = None if ranks is None else self.choose(ranks)
        self.attach()  # its server may have gone meanwhile
        record = self._owner.restart(record.id, chosen)
        with self._connection.replaced():
            record = self._follow(record, progress)
        client = self._connection.client
        if client and (failures := client.link.not_started(chosen or [])):
            raise with_last_lines(failures[0])
        return record

    def extend(self, seconds: float | None) -> PoolRecord:
        """Let the pool run longer than its time limit, and count its idle time anew."""
        record, _ = self.require()
        self.attach()  # its server may have gone meanwhile
        return self._owner.extend(record.id, seconds)

    def tell_lanes(self, told: list[RankLanes]) -> None:
        """Have what ranks did in a profiled cell shown in the timeline."""
        if self._record:
            self._owner.tell_lanes(self._record.id, told)

    def keep_connected(self, call: Future[Any]) -> None:
        """Hear of a call to its end, also if ranks are replaced meanwhile."""
        self._connection.keep_for(call)

    def repair_group(self) -> bool:
        """Make the process group whole, if it is not; tell whether it is."""
        return self._loop.run(self.require()[1].repair_group())

    def interrupt(self) -> list[int]:
        """Stop whatever the ranks run; return those that did not stop."""
        return self._loop.run(self.require()[1].stop_all())

    def run(
        self,
        code: str,
        ranks: str,
        execution_count: int | None,
        allow_stdin: bool,
        options: Options | None = None,
    ) -> None:
        """Run code on ranks, written as `parse_ranks` reads them; empty is all of them.

        Raises
        ------
        DistError
            If there is no pool, or not this rank.
        CellFailed
            If the code failed on a rank.
        """
        record, client = self.require()
        self._cells += 1
        name = f"{record.id}-{os.getpid()}-{self._cells}"
        cell = Cell(client, self._loop, self.choose(ranks), name, options or Options())
        cell.run(code, execution_count, allow_stdin)

    def choose(self, ranks: str) -> list[int]:
        """Return ranks written as `parse_ranks` reads them; empty is all of them."""
        size = self.require()[0].world_size
        return parse_ranks(ranks, size) if ranks.strip() else list(range(size))

    def status(self) -> tuple[PoolRecord, dict[int, RankStatus], dict[int, str]]:
        """Return the pool, what each rank says of itself, and why dead ones are dead."""
        record, client = self.require()
        return record, self._loop.run(client.status()), client.dead
