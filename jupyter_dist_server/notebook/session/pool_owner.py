"""The owner of the notebook's pool: its Jupyter server, this kernel, or another notebook."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.agents.attachment import KERNEL
from ...common.protocol.failure_reason import Reason
from ...common.protocol.pool_record import PoolRecord
from ...common.protocol.ranks.profile_messages import RankLanes
from ...placement.requests.request import PoolRequest
from ...pools.end_reasons import start_cancelled
from ..loop_thread import LoopThread
from .pool_control import LocalControl
from .server_control import ServerControl, find_server


class PoolOwner:
    """Starts, finds and stops the notebook's pool through its owner."""

    def __init__(self, loop: LoopThread) -> None:
        self._local = LocalControl(loop)
        self.control: LocalControl | ServerControl = self._local
        self._is_guest = False
        """Whether the pool is another notebook's."""

    def start(self, request: PoolRequest) -> PoolRecord:
        """Begin to start a pool: in the server, or in this kernel without one."""
        self._is_guest = False
        self.control = find_server() or self._local
        return self.control.start(
            replace(
                request,
                python=sys.executable,
                cwd=os.getcwd(),
                sys_path=tuple(path for path in sys.path if isinstance(path, str)),
                base_env=dict(os.environ),
                name=os.environ.get("JPY_SESSION_NAME", ""),
                kernel_pid=os.getpid(),
            )
        )

    def adopt(self, pool_id: str) -> PoolRecord:
        """Use a pool that another notebook has started; see `LocalControl.adopt`."""
        self.control, self._is_guest = self._local, True
        return self._local.adopt(pool_id)

    def find(self, last: PoolRecord | None) -> PoolRecord | None:
        """Return the notebook's pool as known to the server, to us, or to its agent."""
        record, silent = None, None
        try:
            record = self.control.find()
        except DistError:  # the server is gone, or a new one, but the pool may still run
            silent, self.control = self.control, self._local
        if record is None and self.control is self._local and (server := find_server(silent)):
            record = server.find()
            if record:
                self.control = server
        if record is None and self.control is self._local:
            record = self._local.adopt_own(last.id if last else None)
        return record

    def follow(self, record: PoolRecord, progress: Callable[[PoolRecord], None]) -> PoolRecord:
        """Wait until a pool runs; an interrupt cancels its start, but not the restart of ranks."""
        try:
            while record.state in ("PENDING", "CONFIGURING"):
                progress(record)
                record = self.control.wait(record, 10.0)
        except KeyboardInterrupt:
            if record.started:
                raise
            (self._local.release if self._is_guest else self.control.stop)(record.id)
            raise start_cancelled() from None
        if not record.state.has_ranks:
            raise why_it_ended(self.until_ended(record))
        progress(record)
        return record

    def follow_resize(
        self, record: PoolRecord, progress: Callable[[PoolRecord], None]
    ) -> PoolRecord:
        """Wait until a pool has another size; an interrupt leaves it as it is, if that can be."""
        try:
            while record.resizing and not record.resizing.failure and not record.ended:
                progress(record)
                record = self.control.wait(record, 10.0)
        except KeyboardInterrupt:
            self.control.resize(record.id, record.world_size, None)
            raise
        if record.resizing and record.resizing.failure:
            raise record.resizing.failure.error()
        return record

    def follow_parking(
        self, record: PoolRecord, progress: Callable[[PoolRecord], None]
    ) -> PoolRecord:
        """Wait until a pool is parked, or resumed; an interrupt in line leaves it parked."""
        try:
            while record.parking and not record.parking.failure and not record.state.ended:
                progress(record)
                record = self.control.wait(record, 10.0)
        except KeyboardInterrupt:
            if record.parking and record.parking.resume:
                self.control.park(record.id)
            raise
        if record.parking and record.parking.failure:
            raise record.parking.failure.error()
        if record.state.ended:
            raise why_it_ended(record)
        progress(record)
        return record

    def until_ended(self, record: PoolRecord, seconds: float | None = None) -> PoolRecord:
        """Follow a pool until it has ended, or too long; with `seconds`, if it is not ending."""
        begun = time.monotonic()
        while record.ended is None:
            limit = 2 * patience.end  # its agent may be stopped: then it is killed after `end`
            if seconds is not None and record.state != "COMPLETING":
                limit = seconds
            if (left := begun + limit - time.monotonic()) <= 0:
                break
            record = self.control.wait(record, min(left, 10.0))
        return record

    def stop(self, record: PoolRecord) -> bool:
        """Stop a pool unless another notebook's kernel still uses it; tell whether it was."""
        guest, self._is_guest = self._is_guest, False
        kernels = [one for one in record.attachments if one.kind == KERNEL]
        if guest and any(kernel.pid != os.getpid() for kernel in kernels):
            self._local.release(record.id)
            return False
        self.control.stop(record.id)
        return True

    def tell_lanes(self, pool_id: str, told: list[RankLanes]) -> None:
        """Show what ranks did in a profiled cell in the timeline."""
        with contextlib.suppress(DistError):  # the report is enough
            control = (self._is_guest and find_server()) or self.control
            control.tell_lanes(pool_id, told)

    def leave(self) -> None:
        """Forget the server and the pool."""
        self.control, self._is_guest = self._local, False


def no_pool() -> DistError:
    """Return the error for what needs a pool."""
    return DistError("no_pool", "No pool is running.", "Start one with %dist_init.")


def why_it_ended(record: PoolRecord) -> DistError:
    """Return the reason why a pool ended, as an error."""
    if record.reason:
        return with_last_lines(record.reason)
    return DistError("no_pool", "The pool was stopped.", "Start one with %dist_init.")


def with_last_lines(reason: Reason) -> DistError:
    """Return a reason as an error with the last lines of stderr."""
    said = [f"  {line}" for line in reason.stderr[-6:]]
    hint = "\n".join([*filter(None, [reason.hint]), *said])
    return DistError(reason.code, reason.message, hint)
