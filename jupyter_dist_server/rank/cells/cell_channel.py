"""The rank's short way for cells: a socket of the main thread's own.

A cell sent over a kernel's shell channel passes through another thread, announces that the kernel
is busy, repeats its input and waits for its output to be flushed: for a rank, that is most of the
cost of a small cell. A ``dist_cell_request`` comes here instead. The very same machinery runs it,
in turn with the shell channel's cells; its reply follows its outputs on the iopub channel, or comes
back on this socket if there were none.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable

import zmq

Run = Callable[[zmq.Socket[bytes], list[bytes]], Awaitable[None]]
"""Runs a cell, which came over a socket in some frames."""
_EVENTS, _READABLE = int(zmq.EVENTS), int(zmq.POLLIN)  # enums are slow


class CellChannel:
    """Receive cells, run them one after the other.

    Parameters
    ----------
    socket : zmq.Socket
        A bound ROUTER.
    run : callable
        Runs a cell.
    """

    def __init__(self, socket: zmq.Socket[bytes], run: Run) -> None:
        self._socket = socket
        self._run = run
        self._waiting: deque[list[bytes]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._context = contextvars.copy_context()

    def start(self) -> None:
        """Begin to receive, in the running event loop."""
        self._loop = asyncio.get_event_loop()
        self._loop.add_reader(self._socket.FD, self._on_readable)
        self._loop.call_soon(self._on_readable)  # what came before this is not announced again

    def _on_readable(self) -> None:
        # The descriptor tells of a change once, so everything there is must be taken.
        while int(self._socket.get(_EVENTS)) & _READABLE:
            self._waiting.append(self._socket.recv_multipart())
        if self._waiting and self._worker is None:
            self._worker = self._context.run(self._loop.create_task, self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._run(self._socket, self._waiting.popleft())
        finally:
            self._worker = None
            # What a cell sets there is set in the next one: `np.seterr`, `decimal`, your own.
            self._context = contextvars.copy_context()
            # Sending may have swallowed the descriptor's news of another request.
            self._loop.call_soon(self._on_readable)
