"""How the agent on another node gets the GPUs of its ranks: a child leases them.

The agent itself does not read NVML, and needs none of the modules that do.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import msgspec

from ...common.patience import patience
from ...common.processes.python_command import python_command
from ...common.protocol.failure_reason import Reason
from ...common.protocol.node_messages import NodeRequest, read_node_allocation
from ...common.protocol.pool_file import PoolFile

_MODULE = "jupyter_dist_server.placement.lease_on_node"


class LeaseRequest:
    """Asks for GPUs, if the pool uses some; `wait` returns the answer."""

    def __init__(self, pool: PoolFile) -> None:
        self._pool = pool
        self._socket: socket.socket | None = None
        if not pool.ranks[0].gpu:
            return
        mapped = [gpu for _, gpu in pool.record.node_map or () if gpu is not None]
        gpus = [mapped[rank] for rank in pool.own] if mapped else []
        # An argument has at most 128 KiB, and all users can read it.
        record = msgspec.structs.replace(
            pool.record, ranks=[], attachments=[], cwd="", kernel_id=None
        )
        asked = NodeRequest(record, len(pool.own), gpus, pool.force)
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = python_command(sys.executable, _MODULE)
            self._child = subprocess.Popen(
                [*command, str(theirs.fileno()), msgspec.json.encode(asked).decode()],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def wait(self) -> tuple[PoolFile, list[int], Reason | None]:
        """Return the pool with our GPUs, the descriptors of the lease, and why there is none."""
        if not self._socket:
            return self._pool, [], None
        self._socket.settimeout(patience.driver)
        with self._socket:
            try:
                said, descriptors, _, _ = socket.recv_fds(self._socket, 1 << 20, 256)
            except OSError:
                said, descriptors = b"", []
        self._child.kill()
        self._child.wait()
        try:
            answer = read_node_allocation(said)
        except ValueError:
            why = Reason("node_failed", "The process that leases its GPUs ended without an answer.")
            return self._pool, [], why
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        placed = dict(zip(self._pool.own, answer.ranks, strict=False))
        ranks = [placed.get(rank, known) for rank, known in enumerate(self._pool.ranks)]
        pool = msgspec.structs.replace(self._pool, ranks=ranks)
        return pool, descriptors, answer.failure
