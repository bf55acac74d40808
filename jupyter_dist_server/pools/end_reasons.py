"""Why a pool did not start, or ended."""

from __future__ import annotations

from pathlib import Path

from ..common.errors import DistError
from ..common.pool_folder import log_tail
from ..common.processes.process_ref import UNKNOWN_EXIT
from ..common.protocol.failure_reason import Reason
from ..common.protocol.pool_record import PoolRecord


def start_cancelled() -> DistError:
    """Return the error of a start that was cancelled, and of which nothing is left."""
    return DistError(
        "start_cancelled", "The start was cancelled, and all its processes have ended."
    )


def too_slow(record: PoolRecord, seconds: float) -> Reason:
    """Name the ranks that were not ready in time."""
    folder = Path(record.folder)
    waiting = [rank.rank for rank in record.ranks if rank.state not in ("idle", "busy")]
    late = waiting[0] if waiting else 0
    return Reason(
        "start_timeout",
        f"The pool was not ready within {seconds:g} s: {len(waiting)} of {record.world_size} "
        f"ranks did not start, such as rank {late}.",
        "Try again, or set a longer --timeout.",
        late,
        log_tail(folder / f"rank-{late}.log") or log_tail(folder / "agent.log"),
    )


def agent_stopped(pid: int, seconds: float) -> Reason:
    """Say that ranks were not ready in time because their agent's process is stopped."""
    return Reason(
        "start_timeout",
        f"The pool was not ready within {seconds:g} s: its agent (pid {pid}) was stopped, by a "
        "signal or a debugger.",
        "Start the pool again with %dist_init.",
    )


def agent_ended(record: PoolRecord, code: int) -> Reason:
    """Say how the agent ended."""
    log = log_tail(Path(record.folder, "agent.log"))
    if log and "No module named 'jupyter_dist_server" in log[-1]:
        return Reason(
            "package_missing",
            f"jupyter_dist_server is not installed in the kernel's environment ({record.python}).",
            f'Install it there: "{record.python}" -m pip install jupyter-dist-server',
        )
    how = f"exited with code {code}"
    if code == UNKNOWN_EXIT:
        how = "ended without an error message"
    elif code < 0:
        how = f"was killed by signal {-code}"
    return Reason(
        "agent_failed",
        f"The pool's agent {how}, and its ranks ended with it.",
        "Start the pool again with %dist_init.",
        stderr=log,
    )


def broken(error: Exception, started: bool) -> Reason:
    """Say that an unexpected error has ended a pool."""
    if not started:
        return Reason("start_failed", f"The pool could not be started: {error!r}.")
    return Reason(
        "pool_failed",
        f"The pool was ended by an unexpected error: {error!r}.",
        "Start a new one with %dist_init.",
    )


def abandoned(seconds: float) -> Reason:
    """Say that a pool's kernel had ended, and nobody has taken the pool over."""
    return Reason(
        "orphaned",
        f"The pool's kernel had been gone for {seconds:g} s, so the pool was stopped.",
        "Start a new one with %dist_init.",
    )
