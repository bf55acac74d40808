"""Whoever owns the notebook's pool: its Jupyter server, this kernel, or another notebook."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from ...common.errors import DistError
from ...common.protocol.agents.attachment import KERNEL
from ...common.protocol.failure_reason import Reason
from ...common.protocol.pool_record import PoolRecord
from ...common.protocol.ranks.profile_messages import RankLanes
from ...placement.requests.request import PoolRequest
from ...pools.end_reasons import start_cancelled
from ..loop_thread import LoopThread
from .pool_control import Control, LocalControl
from .server_control import find_server

_NEWS = 10.0
"""Seconds for which one question for news of a pool may wait."""
END = 30.0
"""Seconds within which a pool ends that is ending: a stopped agent is killed after some."""


class PoolOwner:
    """Has the notebook's pool started, found and stopped by its owner.

    Parameters
    ----------
    loop : LoopThread
        Where pools live that this kernel owns itself.
    """

    def __init__(self, loop: LoopThread) -> None:
        self._local = LocalControl(loop)
        self._control: Control = self._local
        self._is_guest = False
        """Whether the pool is another notebook's."""

    def start(self, request: PoolRequest) -> PoolRecord:
        """Begin to start a pool: in the server, or in this kernel without one."""
        self._is_guest = False
        self._control = find_server() or self._local
        return self._control.start(
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
        self._control, self._is_guest = self._local, True
        return self._local.adopt(pool_id)

    def find(self, last: PoolRecord | None) -> PoolRecord | None:
        """Return the notebook's pool, from whoever knows it: the server, we, or its agent."""
        record, silent = None, None
        try:
            record = self._control.find()
        except DistError:  # the server has gone, or is a new one; the pool need not have ended
            silent, self._control = self._control, self._local
        if record is None and self._control is self._local and (server := find_server(silent)):
            record = server.find()
            if record:
                self._control = server
        if record is None and self._control is self._local:
            record = self._local.adopt_own(last.id if last else None)
        return record

    def wait(self, record: PoolRecord, seconds: float) -> PoolRecord:
        """Return the pool's record once it is newer than `record`, or after some seconds."""
        return self._control.wait(record, seconds)

    def follow(self, record: PoolRecord, progress: Callable[[PoolRecord], None]) -> PoolRecord:
        """Wait until a pool runs; an interrupt cancels a start, but lets ranks be replaced.

        Raises
        ------
        DistError
            If it ends instead; the reason says why.
        """
        try:
            while record.state in ("PENDING", "CONFIGURING"):
                progress(record)
                try:
                    record = self.wait(record, _NEWS)
                except DistError as error:
                    if record.state != "PENDING" or self._control is self._local:
                        raise
                    raise _place_lost(error) from error
        except KeyboardInterrupt:
            if record.started:
                raise
            self._cancel(record)
            raise start_cancelled() from None
        if record.state != "RUNNING":
            raise why_it_ended(self.until_ended(record))
        progress(record)
        return record

    def until_ended(self, record: PoolRecord, patience: float = END) -> PoolRecord:
        """Follow a pool until it has ended, or it is clear that it does not.

        One that is not ending is followed for `patience` seconds.
        """
        begun = time.monotonic()
        while record.ended is None:
            limit = END if record.state == "COMPLETING" else patience
            if (left := begun + limit - time.monotonic()) <= 0:
                break
            record = self.wait(record, min(left, _NEWS))
        return record

    def _cancel(self, record: PoolRecord) -> None:
        if self._is_guest:
            self._local.release(record.id)
        else:
            self._control.stop(record.id)

    def stop(self, record: PoolRecord) -> bool:
        """Stop a pool, unless it is another notebook's that still uses it; tell whether it was."""
        guest, self._is_guest = self._is_guest, False
        kernels = [one for one in record.attachments if one.kind == KERNEL]
        if guest and any(kernel.pid != os.getpid() for kernel in kernels):
            self._local.release(record.id)
            return False
        self._control.stop(record.id)
        return True

    def restart(self, pool_id: str, ranks: list[int] | None) -> PoolRecord:
        """Begin to replace ranks; with `None`, all that are on nodes which are not lost."""
        return self._control.restart(pool_id, ranks)

    def extend(self, pool_id: str, seconds: float | None) -> PoolRecord:
        """Let a pool run longer than its time limit, and count its idle time anew."""
        return self._control.extend(pool_id, seconds)

    def tell_lanes(self, pool_id: str, told: list[RankLanes]) -> None:
        """Have what ranks did in a profiled cell shown in the timeline; the report is enough."""
        with contextlib.suppress(DistError):
            control = (self._is_guest and find_server()) or self._control
            control.tell_lanes(pool_id, told)

    def forget(self) -> None:
        """Keep nothing that makes the next start quicker."""
        self._control.forget()

    def leave(self) -> None:
        """Know of no server and no pool any more."""
        self._control, self._is_guest = self._local, False


def _place_lost(error: DistError) -> DistError:
    """Return what to raise if the server is gone, or another one, that waited for GPUs for us."""
    return DistError(
        error.code,
        "The Jupyter server ended or does not respond while the pool waited for GPUs.",
        "A server that ended has given up the place in line. Run %dist_init again.",
    )


def no_pool() -> DistError:
    """Return what to raise where a pool is needed."""
    return DistError("no_pool", "No pool is running.", "Start one with %dist_init.")


def why_it_ended(record: PoolRecord) -> DistError:
    """Return the reason for which a pool ended, as an error."""
    reason = record.reason
    if reason is None:
        return DistError("no_pool", "The pool was stopped.", "Start one with %dist_init.")
    return with_last_lines(reason)


def with_last_lines(reason: Reason) -> DistError:
    """Return a reason as an error that shows what was written last."""
    said = [f"  {line}" for line in reason.stderr[-6:]]
    hint = "\n".join([*filter(None, [reason.hint]), *said])
    return DistError(reason.code, reason.message, hint)
