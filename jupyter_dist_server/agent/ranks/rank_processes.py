"""How an agent spawns, signals and cleans up the processes of its ranks."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection

import msgspec
import psutil

from ...common.processes.pool_processes import members_of_pool, session_members
from ...common.processes.process_ref import ProcessRef
from ...common.processes.python_command import python_command
from ...common.protocol.agents.agent_messages import RankState
from ...common.protocol.agents.rank_start import RankOrders
from ...rank import main as rank_process


def spawn(orders: RankOrders) -> subprocess.Popen[bytes]:
    """Start a rank afresh, instead of forking it."""
    command = python_command(sys.executable, rank_process.__name__)
    return subprocess.Popen(
        [*command, msgspec.json.encode(orders).decode()],
        pass_fds=[orders.report],
        stdin=subprocess.DEVNULL,
    )


def read_report(report: socket.socket) -> tuple[bytes | None, list[int]]:
    """Read a rank's only message; `None` if there is none yet, empty if it ended without.

    With it come the descriptors of its stderr, see `RankLogs.keep`.
    """
    try:
        line, descriptors, _, _ = socket.recv_fds(report, 65536, 2)
    except (BlockingIOError, ConnectionResetError):
        return None, []
    return line, descriptors


def close_all_but(keep: set[int]) -> None:
    """Close descriptors that a forked rank must not share with its agent."""
    for name in os.listdir("/dev/fd"):
        if int(name) not in keep:
            with contextlib.suppress(OSError):
                os.close(int(name))


def signal_rank(rank: RankState, number: signal.Signals) -> None:
    """Signal a rank and the subprocesses in its group, such as a `!command`."""
    if rank.pid and rank.state != "dead":
        try:
            os.killpg(rank.pid, number)
        except ProcessLookupError:  # just forked, it leads no group yet
            os.kill(rank.pid, number)


def left_behind(
    ended: list[RankState], pool_id: str, by_all: bool, spared: Collection[int] = ()
) -> set[psutil.Process]:
    """Find what ranks have started in the background, without the ranks themselves.

    It is in their sessions, has their environment or, as the agent is the subreaper on Linux, is a
    descendant of the agent. Whose descendant it is cannot be told, so those count only if all ranks
    have ended. `spared` are children of the agent that are not ranks, and live on.
    """
    leaders = [
        ProcessRef(rank.pid, rank.start_ticks) for rank in ended if rank.pid and rank.start_ticks
    ]
    left = set(session_members(leaders))
    left.update(members_of_pool(pool_id, [rank.rank for rank in ended]))
    if by_all:
        for child in psutil.Process().children():
            if child.pid not in spared:
                left.update({child, *_descendants(child)})
    ranks = {leader.pid for leader in leaders}
    return {process for process in left if process.pid not in ranks}


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
