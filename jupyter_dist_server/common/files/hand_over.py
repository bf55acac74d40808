"""Open files, such as those of a lease, handed over to a pool's agent that runs already."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from ..background_tasks import within
from ..patience import patience
from ..peers import check_unix_peer

_SOCKET = "lease.sock"
_MOST = 256
"""Descriptors that a message can carry: 253 in Linux."""


class HandOver:
    """Waits in a pool's folder for the agent, to which it gives the files."""

    def __init__(self, folder: Path, descriptors: Sequence[int]) -> None:
        self._path = folder / _SOCKET
        self._descriptors = descriptors
        self._listener = socket.socket(socket.AF_UNIX)
        self._path.unlink(missing_ok=True)  # of an owner that was killed
        self._listener.bind(str(self._path))
        self._listener.listen(1)
        self._listener.setblocking(False)

    async def give(self) -> None:
        """Give the files; raises `asyncio.TimeoutError` if the agent does not come for them."""
        accepting = asyncio.get_running_loop().sock_accept(self._listener)
        agent, _ = await within(accepting, patience.node)
        with agent:
            socket.send_fds(agent, [b"."], self._descriptors)

    def close(self) -> None:
        """Wait no longer."""
        self._listener.close()
        self._path.unlink(missing_ok=True)


async def take_over(folder: Path) -> list[int]:
    """Return the files that a `HandOver` gives; raises `OSError` if there is none."""
    loop, there = asyncio.get_running_loop(), asyncio.Event()
    with socket.socket(socket.AF_UNIX) as owner:
        owner.setblocking(False)
        await loop.sock_connect(owner, str(folder / _SOCKET))
        check_unix_peer(owner)
        loop.add_reader(owner, there.set)
        try:
            with contextlib.suppress(asyncio.TimeoutError):
                await within(there.wait(), patience.node)
            _, descriptors, _, _ = socket.recv_fds(owner, 1, _MOST)
        finally:
            loop.remove_reader(owner)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return descriptors
