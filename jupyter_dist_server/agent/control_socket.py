"""The agent's end of its control socket: it reads commands and sends snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from ..common.background_tasks import Tasks, within
from ..common.patience import patience
from ..common.peers import check_unix_peer
from ..common.protocol.agents.agent_messages import Commands, News, Refused, decode_command, encode

Client = asyncio.StreamWriter
"""A connected client; what belongs to a connection ends with it."""

_BACKLOG_LIMIT = 1 << 24
"""Bytes of unread answers at which a client is dropped."""


@dataclass(eq=False)
class ControlSocket:
    """Serves clients: they get `snapshot` when they connect, and at each `broadcast`."""

    _listener: socket.socket
    _snapshot: Callable[[], News]
    _obey: Callable[[Client, Commands], None]
    _gone: Callable[[Client], None]
    _writers: set[Client] = field(init=False, default_factory=set)
    _behind: dict[Client, asyncio.Task[None]] = field(init=False, default_factory=dict)
    """Clients that have not read the last snapshot, and what waits until they have."""
    _tasks: Tasks = field(init=False, default_factory=Tasks)

    async def open(self) -> None:
        """Begin to serve."""
        self._server = await asyncio.start_unix_server(self._serve, sock=self._listener)

    def broadcast(self) -> None:
        """Send the snapshot to all; one that has not read the last gets the newest afterwards."""
        line = self._line()
        for writer in self._writers - self._behind.keys():
            if writer.transport.get_write_buffer_size():
                self._behind[writer] = self._tasks.add(self._catch_up(writer))
            else:
                writer.write(line)

    async def _catch_up(self, writer: Client) -> None:
        with contextlib.suppress(ConnectionError):  # it went away without reading
            await writer.drain()
            writer.write(self._line())
        del self._behind[writer]

    def tell(self, client: Client, said: News) -> None:
        """Send news to one client; it is dropped if it never reads what it asks for."""
        if client.transport.get_write_buffer_size() > _BACKLOG_LIMIT:
            client.transport.abort()
        else:
            if client in self._behind:  # what it is told may depend on the newest state
                client.write(self._line())
            client.write(encode(said))

    def _line(self) -> bytes:
        return encode(self._snapshot())

    async def _serve(self, reader: asyncio.StreamReader, writer: Client) -> None:
        try:
            check_unix_peer(writer.get_extra_info("socket"))
        except PermissionError:  # root's processes included, as nothing of ours comes from there
            writer.close()
            return
        await self.converse(reader, writer)

    async def converse(self, reader: asyncio.StreamReader, writer: Client) -> None:
        """Serve one client until it closes the connection."""
        self._writers.add(writer)
        writer.transport.set_write_buffer_limits(high=0)  # `drain` waits until all was sent
        writer.write(self._line())
        try:
            while line := await reader.readline():
                self._take(writer, line)
        except ConnectionError:
            pass  # the client went away without a word
        except ValueError:  # a line without an end
            self.tell(writer, Refused("the command is too long"))
        finally:
            self._writers.discard(writer)
            writer.close()
            self._gone(writer)

    def _take(self, client: Client, line: bytes) -> None:
        try:
            command = decode_command(line)
        except ValueError as error:
            self.tell(client, Refused(f"not a command: {error}"))
        else:
            self._obey(client, command)

    async def _flush(self, writer: Client) -> None:
        if behind := self._behind.get(writer):
            await behind
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    async def close(self) -> None:
        """Let all clients read the last snapshot, then close the connections."""
        with contextlib.suppress(asyncio.TimeoutError):
            await within(asyncio.gather(*map(self._flush, list(self._writers))), patience.answer)
        for writer in list(self._writers):
            writer.close()
        await self._tasks.cancel()
        self._server.close()
