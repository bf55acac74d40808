"""Be the agent of one pool, in a process that has imported torch, until the pool ends."""

from __future__ import annotations

import socket
from pathlib import Path

from ..common.files.inherited_lease import InheritedLease
from ..common.files.open_files import raise_limit
from ..common.files.shared_folder import guard
from ..common.patience import patience
from ..common.processes.process_ref import adopt_descendants, call_ourselves
from ..common.protocol.failure_reason import Reason
from .agent import Agent

_LOOPBACK = "127.0.0.1"


def serve(
    listener: socket.socket,
    lease: list[int],
    failure: Reason | None,
    orders: tuple[int, int] | None = None,
) -> None:
    """Be the agent of a control socket, which lies in the pool's folder, until the pool ends.

    It holds the descriptors of a lease until then. With a `failure`, it only says why no rank can
    start. On another node, `orders` are descriptors from and to the first node's agent.
    """
    call_ourselves("dist-agent")
    raise_limit()  # for our ranks too, which have a connection to each other in every group
    held = InheritedLease(lease) if lease else None  # at once, and by no child of ours
    folder = Path(listener.getsockname()).parent
    guarded = guard(folder)
    agent = Agent(folder, listener, held, orders)
    needs_loopback = agent.config.backend != "none" and not agent.config.node
    agent.failure = failure or (no_loopback() if needs_loopback else None)
    if not agent.failure:
        agent.starter.prepare()
    adopt_descendants()
    agent.run()
    guarded.close()
    agent.lease.close()


def no_loopback() -> Reason | None:
    """Return a reason if processes here cannot connect to each other: torch tries for minutes."""
    try:
        with socket.create_server((_LOOPBACK, 0)) as server:
            socket.create_connection(server.getsockname(), patience.busy_answer).close()
    except OSError as error:
        return Reason(
            "no_loopback",
            f"Processes on this machine cannot connect to each other at {_LOOPBACK}: "
            f"{error.strerror or error}.",
            "The loopback interface may be down: ip link set lo up",
        )
    return None
