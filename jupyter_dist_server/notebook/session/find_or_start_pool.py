"""The connection of a notebook to its pool: found, started, attached to, and lost."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path

from ...client.agent_link import can_connect
from ...client.pool_client import PoolClient
from ...common.errors import DistError
from ...common.protocol.pool_record import PoolRecord
from ...common.units import count_ranks
from ...placement.requests.request import PoolRequest
from ..loop_thread import LoopThread
from .connection_to_ranks import PoolConnection
from .pool_owner import END, PoolOwner, no_pool, why_it_ended

_NOTICE = 2.0
"""Seconds within which the owner of a pool that is ending says so."""


class ConnectedPool:
    """The notebook's one pool, wherever it is owned, and the connection to it."""

    def __init__(self) -> None:
        self._loop = LoopThread()
        self._owner = PoolOwner(self._loop)
        self._record: PoolRecord | None = None
        self._connection = PoolConnection(self._loop)
        self._failure: DistError | None = None
        self._unreachable: DistError | None = None
        """Why there is no connection to a pool that has not ended."""

    @property
    def loop(self) -> LoopThread:
        """Where the pool's client lives."""
        return self._loop

    @property
    def client(self) -> PoolClient | None:
        """The connection to the ranks, if there is one."""
        client = self._connection.client
        return None if client is None or client.link.closed.is_set() else client

    def look(self) -> None:
        """Connect to ranks that the panel has started meanwhile, if there are any.

        Connections are made in the main thread alone, in which cells run: none is made beside one.

        Raises
        ------
        DistError
            If they cannot be reached.
        """
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and self._connection.client is None:
            record = self._owner.find(self._record)
            if record and record.state == "RUNNING":
                self._connect(record)

    @property
    def all_cells(self) -> bool:
        """Whether cells without a magic of ours go to the ranks too, until their pool ends."""
        if self._connection.all_cells and self.client is None:
            with contextlib.suppress(DistError):  # the cell will fail, and say why
                if record := self._owner.find(self._record):
                    self._connection.end_all_cells_of_others(record.id)
        return self._connection.all_cells

    @all_cells.setter
    def all_cells(self, on: bool) -> None:
        self._connection.all_cells = on

    def start(self, request: PoolRequest, progress: Callable[[PoolRecord], None]) -> PoolRecord:
        """Start a pool and wait until it runs.

        Parameters
        ----------
        request : PoolRequest
            What the user asks for.
        progress : callable
            Called with the pool's record at each change.

        Raises
        ------
        DistError
            If the pool cannot be started; the reason says why.
        """
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

    def _follow(self, record: PoolRecord, progress: Callable[[PoolRecord], None]) -> PoolRecord:
        record = self._owner.follow(record, progress)
        self._connect(record)
        return record

    def attach(self) -> PoolRecord | None:
        """Make sure that the notebook's running pool is connected, if there is one."""
        record = self._owner.find(self._record)
        is_broken = self._connection.is_broken and record and self._connection.is_to(record)
        if record and (is_broken or record.state == "COMPLETING"):
            record = self._wait_for_end(record)
        if record is None:
            self._note_why_it_ended()
            self._disconnect()
        elif record.state == "RUNNING" and not self._connection.is_to(record):
            try:
                self._connect(record)
            except DistError as error:
                before, self._unreachable = self._unreachable, error
                is_new = before is None or before.message != error.message
                if error.code != "agent_silent" and is_new:  # it may be ending just now
                    record = self._wait_for_end(record, _NOTICE)
        self._record = record
        return record

    def living(self) -> PoolRecord | None:
        """Return the running pool, if it is of any use; otherwise it is ended.

        It is of none if all its ranks have died, or we cannot connect as its folder was removed.

        Raises
        ------
        DistError
            If its agent does not answer.
        """
        record = self.attach()
        client = self._connection.client
        if record and record.state == "RUNNING" and client:
            answers = self._loop.run(client.link.answers())
            self._loop.run(client.status())  # ranks that were just killed are known as dead then
            if answers and len(client.dead) < client.world_size:
                return record
            if client.link.closed.is_set():
                return self.attach()
            if not answers:
                raise self._loop.run(client.link.silent_error())
            self._end(record)
            return None
        if record and self._unreachable:
            if can_connect(Path(record.folder)):
                raise self._unreachable
            self._end(record)
            return None
        return record

    def attach_to(self, pool_id: str, progress: Callable[[PoolRecord], None]) -> PoolRecord:
        """Use a pool that another notebook has started.

        Raises
        ------
        DistError
            If this notebook has a pool, or there is none with this id.
        """
        if self.attach():
            raise DistError(
                "pool_exists",
                "This notebook already has a pool.",
                "Detach from it with %dist_shutdown before you attach to another.",
            )
        self._failure = None
        return self._follow(self._owner.adopt(pool_id), progress)

    def _note_why_it_ended(self) -> None:
        """Ask why the pool that we knew is gone; its owner keeps the last one of each kernel."""
        if self._record and not self._failure:
            with contextlib.suppress(DistError):
                last = self._owner.wait(self._record, 0)
                self._failure = why_it_ended(last) if last.ended else None

    def _wait_for_end(self, record: PoolRecord, patience: float = END) -> PoolRecord | None:
        """Follow a pool that is ending, or whose agent is gone and whose owner will notice that."""
        record = self._owner.until_ended(record, patience)
        if record.ended is None:
            return record
        self._failure = why_it_ended(record)
        return None

    def _connect(self, record: PoolRecord) -> None:
        self._disconnect()
        self._connection.open(record)
        self._unreachable = None
        self._record = record

    def _disconnect(self) -> None:
        self._connection.close()
        self._record = None

    def require(self) -> tuple[PoolRecord, PoolClient]:
        """Return the running pool.

        Raises
        ------
        DistError
            If there is none.
        """
        client = self.client
        stale = client is None or (
            len(client.dead) == client.world_size
            or (self._record and client.link.generation != self._record.generation)
        )
        if stale:
            self.attach()
        if self._record and self._record.state in ("PENDING", "CONFIGURING"):
            self._follow(self._record, lambda _: None)
        if self._record and self._unreachable and self._connection.client is None:
            raise self._unreachable
        if self._record is None or self._connection.client is None:
            self._connection.all_cells = False  # the next cell runs where the toolbar says
            raise self._failure or no_pool()
        return self._record, self._connection.client

    def _end(self, record: PoolRecord) -> bool:
        self._disconnect()
        return self._owner.stop(record)

    def reset(self) -> None:
        """Stop the pool, if any, and forget everything."""
        try:
            if record := self.attach():
                self._end(record)
            self._owner.forget()
        finally:
            self._disconnect()
            self._owner.leave()
            self._failure = None
