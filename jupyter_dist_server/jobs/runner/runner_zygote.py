"""The process that forks runners: it has imported what they need, and has no database open.

SQLite must not be carried across a fork (https://www.sqlite.org/howtocorrupt.html), so the
dispatcher forks this one before it opens the store.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

from ...common.processes import call_ourselves
from . import runner

_LONGEST = 65536
_MOST = 1024
"""Descriptors that come with one message."""


class RunnerZygote:
    """The dispatcher's end: forks the zygote, and has runners forked by it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not os.fork():
            self._socket.close()
            _serve(theirs)
            os._exit(0)
        theirs.close()

    def fileno(self) -> int:
        """Return a descriptor that can be read once the zygote has ended."""
        return self._socket.fileno()

    def run(self, folder: Path, job: int, launch: str, descriptors: list[int]) -> None:
        """Have a job run, which gets the descriptors of its lease.

        Raises
        ------
        OSError
            If the zygote has ended.
        """
        order = {"folder": str(folder), "job": job, "launch": launch}
        socket.send_fds(self._socket, [json.dumps(order).encode()], descriptors)


def _serve(orders: socket.socket) -> None:
    call_ourselves("dist-zygote")
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for runners
    while True:
        message, descriptors, _, _ = socket.recv_fds(orders, _LONGEST, _MOST)
        if not message:
            return
        if not os.fork():
            orders.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            order: dict[str, Any] = json.loads(message)
            runner.run(Path(order["folder"]), order["job"], order["launch"], descriptors)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
