"""The notebook's pool: found, started, attached to, used and ended."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ...client.agent_link import can_connect
from ...client.pool_client import POOL_PARKED, PoolClient
from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.pool_record import PoolRecord
from ...common.protocol.ranks.profile_messages import RankLanes
from ...common.protocol.ranks.rank_messages import RankStatus
from ...common.rank_specs import parse_ranks
from ...common.units import count_ranks
from ...placement.requests.request import PoolRequest
from ..cells.cell import Cell, Options
from ..loop_thread import LoopThread
from ..scripts.ran_cells import RanCells
from .connection_to_ranks import PoolConnection
from .pool_owner import PoolOwner, no_pool, why_it_ended, with_last_lines


class Debugger(Protocol):
    """The debugger of the notebook, while it is on."""

    def source(self) -> str | None:
        """Attach to the ranks, and return the editor's path of the cell that is run."""


Progress = Callable[[PoolRecord], None]
"""Called with a pool's record at each change while it starts."""


def _unseen(work: Callable[[Progress], PoolRecord]) -> None:
    work(lambda _: None)


class CurrentPool:
    """The notebook's one pool, whichever process owns it, and the connection to it.

    Methods raise `DistError` if there is no pool, or it cannot be used.
    """

    def __init__(self) -> None:
        self.loop = LoopThread()
        self.ran = RanCells()
        self.debugger: Debugger | None = None
        self._owner = PoolOwner(self.loop)
        self.connection = PoolConnection(self.loop)
        self._record: PoolRecord | None = None
        self._failure: DistError | None = None
        self._unreachable: DistError | None = None
        """Why there is no connection to a pool that has not ended."""
        self._cells = 0
        self.show_progress: Callable[[Callable[[Progress], PoolRecord]], None] = _unseen
        """Shows how far something is that takes a while."""

    # -- find, start, end -------------------------------------------------------------------

    @property
    def client(self) -> PoolClient | None:
        """The connection to the ranks, if there is one."""
        client = self.connection.client
        return None if client is None or client.link.closed.is_set() else client

    def require(self) -> tuple[PoolRecord, PoolClient]:
        """Return the running pool."""
        client = self.client
        stale = client is None or (
            len(client.dead) == client.world_size
            or (self._record and client.link.generation != self._record.generation)
        )
        if stale:
            self.attach()
        if self._record and self._record.state in ("PENDING", "CONFIGURING"):
            self._follow(self._record, lambda _: None)
        if self._record and self._unreachable and self.connection.client is None:
            raise self._unreachable
        if self._record is None or self.connection.client is None:
            self.connection.all_cells = False  # the next cell runs where the toolbar says
            raise self._failure or no_pool()
        return self._record, self.connection.client

    def look(self) -> None:
        """Connect to ranks that the panel has started meanwhile, if there are any.

        Connections are made only in the main thread, in which cells run: none is made beside one.
        """
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and self.connection.client is None:
            record = self._owner.find(self._record)
            if record and record.state.has_ranks:
                self._connect(record)

    @property
    def all_cells(self) -> bool:
        """Whether cells without a magic of ours go to the ranks too, until their pool ends."""
        if self.connection.all_cells and self.client is None:
            with contextlib.suppress(DistError):  # the cell will fail, and say why
                if record := self._owner.find(self._record):
                    self.connection.end_all_cells_of_others(record.id)
        return self.connection.all_cells

    @all_cells.setter
    def all_cells(self, on: bool) -> None:
        self.connection.all_cells = on

    def start(self, request: PoolRequest, progress: Progress) -> PoolRecord:
        """Start a pool and wait until it runs."""
        if self.living():
            assert self._record
            raise DistError(
                "pool_exists",
                f"This notebook already has a pool: {count_ranks(self._record.world_size)}, "
                f"{self._record.backend}, {self._record.state.value}.",
                "Use it, or stop it with %dist_shutdown before you start another.",
            )
        self._failure = None
        return self._follow(self._owner.start(request), progress)

    def _follow(self, record: PoolRecord, progress: Progress) -> PoolRecord:
        record = self._owner.follow(record, progress)
        self._connect(record)
        return record

    def attach(self) -> PoolRecord | None:
        """Make sure that the notebook's running pool is connected, if there is one."""
        record = self._owner.find(self._record)
        is_broken = self.connection.is_broken and record and self.connection.is_to(record)
        if record and (is_broken or record.state == "COMPLETING"):
            record = self._wait_for_end(record)
        if record is None:
            if self._record and not self._failure:
                with contextlib.suppress(DistError):  # the owner keeps a kernel's last pool
                    last = self._owner.control.wait(self._record, 0)
                    self._failure = why_it_ended(last) if last.ended else None
            self._disconnect()
        elif record.state.has_ranks and not self.connection.is_to(record):
            try:
                self._connect(record)
            except DistError as error:
                before, self._unreachable = self._unreachable, error
                is_new = before is None or before.message != error.message
                if error.code != "agent_silent" and is_new:  # its agent may just have ended
                    record = self._wait_for_end(record, patience.cleanup)
        self._record = record
        return record

    def living(self) -> PoolRecord | None:
        """Return the running pool if it can be used; otherwise end it.

        It cannot if all its ranks are dead, or its folder was removed.
        """
        record = self.attach()
        client = self.connection.client
        if record and record.state.has_ranks and client:
            answers = self.loop.run(client.link.answers())
            self.loop.run(client.status())  # so that killed ranks are known as dead
            if answers and len(client.dead) < client.world_size:
                return record
            if client.link.closed.is_set():
                return self.attach()
            if not answers:
                raise self.loop.run(client.link.silent_error())
            self._end(record)
            return None
        if record and self._unreachable:
            if can_connect(Path(record.folder)):
                raise self._unreachable
            self._end(record)
            return None
        return record

    def attach_to(self, pool_id: str, progress: Progress) -> PoolRecord:
        """Use a pool that another notebook has started."""
        if self.attach():
            raise DistError(
                "pool_exists",
                "This notebook already has a pool.",
                "Detach from it with %dist_shutdown before you attach to another.",
            )
        self._failure = None
        return self._follow(self._owner.adopt(pool_id), progress)

    def _wait_for_end(self, record: PoolRecord, seconds: float | None = None) -> PoolRecord | None:
        """Follow a pool that is ending, or whose owner will notice that its agent is gone."""
        record = self._owner.until_ended(record, seconds)
        if record.ended is None:
            return record
        self._failure = why_it_ended(record)
        return None

    def _connect(self, record: PoolRecord) -> None:
        self._disconnect()
        self.connection.open(record)
        self._unreachable = None
        self._record = record

    def _disconnect(self) -> None:
        self.connection.close()
        self._record = None

    def stop(self) -> tuple[PoolRecord, bool]:
        """Stop the pool, or leave it to another notebook; return it, and whether it was stopped."""
        record = self.attach()
        if record is None:
            raise no_pool()
        return record, self._end(record)

    def _end(self, record: PoolRecord) -> bool:
        self._disconnect()
        return self._owner.stop(record)

    def reset(self) -> None:
        """Stop the pool, if any, and forget everything."""
        try:
            if record := self.attach():
                self._end(record)
            self._owner.control.forget()
        finally:
            self._disconnect()
            self._owner.leave()
            self._failure = None

    def restart(self, ranks: str | None, progress: Progress) -> PoolRecord:
        """Replace ranks, all if empty, and wait until they are ready; `None`: drop lost nodes."""
        record, _ = self.require()
        chosen = None if ranks is None else self.choose(ranks)
        self.attach()  # its server may have gone meanwhile
        record = self._owner.control.restart(record.id, chosen)
        with self.connection.replaced():
            record = self._follow(record, progress)
        client = self.connection.client
        if client and (failures := client.link.not_started(chosen or [])):
            raise with_last_lines(failures[0])
        return record

    def resize(self, num_ranks: int, wait: float | None, progress: Progress) -> PoolRecord:
        """Have more or fewer ranks, and wait until the new ones are ready."""
        record, _ = self.require()
        self.attach()  # its server may have gone meanwhile
        record = self._owner.control.resize(record.id, num_ranks, wait)
        record = self._owner.follow_resize(record, progress)
        with self.connection.replaced():
            return self._follow(record, progress)

    def park(self, progress: Progress) -> PoolRecord:
        """Park the pool, and wait until others can use its GPUs."""
        record, _ = self.require()
        self.attach()  # its server may have gone meanwhile
        record = self._owner.control.park(record.id)
        self._record = self._owner.follow_parking(record, progress)
        return self._record

    def resume(self, progress: Progress) -> PoolRecord:
        """Bring a parked pool back to its GPUs; wait in line if others have them."""
        record, _ = self.require()
        self.attach()  # its server may have gone meanwhile
        while True:
            record = self._owner.control.resume(record.id)
            is_parking = record.parking and not record.parking.resume
            try:
                self._record = record = self._owner.follow_parking(record, progress)
            except DistError as error:
                if not is_parking or error.code != "cannot_park":
                    raise
                continue  # it runs, and forgets why it could not be parked
            if not (is_parking and record.parked):  # then it could not be called off any more
                return record

    def ready(self) -> tuple[PoolRecord, PoolClient]:
        """Return the running pool; one that is parked is resumed first."""
        record, client = self.require()
        if client.link.is_parked:
            self.show_progress(self.resume)
            if self._record and self._record.parked:
                message = "The pool stays parked."
                raise DistError(POOL_PARKED, message, "Resume it with %dist_resume.")
        return record, client

    def extend(self, seconds: float | None) -> PoolRecord:
        """Let the pool run longer than its time limit, and restart its idle time."""
        record, _ = self.require()
        self.attach()  # its server may have gone meanwhile
        return self._owner.control.extend(record.id, seconds)

    def tell_lanes(self, told: list[RankLanes]) -> None:
        """Show what ranks did in a profiled cell in the timeline."""
        if self._record:
            self._owner.tell_lanes(self._record.id, told)

    # -- use --------------------------------------------------------------------------------

    def choose(self, ranks: str) -> list[int]:
        """Return ranks written as `parse_ranks` reads them; empty is all of them."""
        size = self.require()[0].world_size
        return parse_ranks(ranks, size) if ranks.strip() else list(range(size))

    def run(
        self,
        code: str,
        ranks: str,
        execution_count: int | None,
        allow_stdin: bool,
        options: Options | None = None,
    ) -> None:
        """Run code on ranks, see `choose`; raise `CellFailed` if it fails on one."""
        while True:
            record, client = self.ready()
            self._cells += 1
            name = f"{record.id}-{os.getpid()}-{self._cells}"
            cell = Cell(client, self.loop, self.choose(ranks), name, options or Options())
            try:
                cell.run(code, execution_count, allow_stdin)
                return
            except DistError as error:
                if error.code != POOL_PARKED:  # while the cell waited for its turn
                    raise

    def repair_group(self) -> bool:
        """Re-create the process group if needed; tell whether it is usable."""
        return self.loop.run(self.require()[1].repair_group())

    def interrupt(self) -> list[int]:
        """Stop what the ranks run; return those that did not stop."""
        return self.loop.run(self.require()[1].stop_all())

    def status(self) -> tuple[PoolRecord, dict[int, RankStatus], dict[int, str]]:
        """Return the pool, what each rank says of itself, and why dead ones are dead."""
        record, client = self.require()
        if client.link.snapshot:  # it may have been parked meanwhile
            record.parked = client.link.snapshot.parked
        return record, self.loop.run(client.status()), client.dead
