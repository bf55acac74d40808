"""The record of a pool, and how to wait for its changes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

from ..common.background_tasks import within
from ..common.errors import DistError
from ..common.pool_folder import read_config
from ..common.protocol.agents.agent_messages import Snapshot
from ..common.protocol.pool_record import PoolRecord, PoolState


def check_running(record: PoolRecord, what: str) -> None:
    """Raise `DistError` unless a pool runs; `what` it cannot do follows "The pool cannot"."""
    if record.state is not PoolState.RUNNING:
        hint = "Resume it with %dist_resume first." if record.state is PoolState.SUSPENDED else ""
        raise DistError(
            "pool_not_running",
            f"The pool cannot {what}: its state is {record.state.value}.",
            "Start a pool with %dist_init." if record.state.ended else hint,
        )


class LiveRecord:
    """A record that its owner changes."""

    def __init__(self, record: PoolRecord) -> None:
        self.record = record
        self._changed = asyncio.Event()
        """Set at the next change."""

    def tell(self) -> None:
        """Tell all listeners that the record has changed."""
        raise NotImplementedError

    def change(self, **fields: Any) -> None:
        """Change the record and tell all listeners."""
        for name, value in fields.items():
            setattr(self.record, name, value)
        self.record.version += 1
        self._changed.set()
        self._changed = asyncio.Event()
        self.tell()

    async def changed_since(self, version: int, wait: float) -> None:
        """Return when the record is newer than `version`, or after `wait` seconds."""
        deadline = time.monotonic() + wait
        while self.record.version <= version and (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await within(self._changed.wait(), left)

    def set_notice(self, notice: str, holds: bool) -> None:
        """Add a notice to the record, or remove it."""
        others = [other for other in self.record.notices if other != notice]
        notices = [*others, notice] if holds else others
        if notices != self.record.notices:
            self.change(notices=notices)

    def take(self, snapshot: Snapshot) -> None:
        """Note the agent's snapshot; it may have left out nodes, and renumbered the ranks."""
        record = self.record
        if snapshot.ranks and len(snapshot.ranks) != record.world_size:
            with contextlib.suppress(OSError):  # the pool has ended meanwhile
                written = read_config(Path(record.folder)).record
                record.world_size, record.ranks = written.world_size, written.ranks
                record.node_map, record.notices = written.node_map, written.notices
        record.take(snapshot)

    def forget_cells(self) -> None:
        """Forget the numbers of cells: the notebook's kernel counts from 1 again."""
        for rank in self.record.ranks:
            rank.cell = None
        self.change()
