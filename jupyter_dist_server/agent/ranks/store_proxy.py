"""The agent forwards connections to the pool's store, and admits only this user.

torch's TCPStore serves whoever connects. So rank 0 serves it on a listener that hears the agent
alone; the agent listens where the ranks expect the store, asks the kernel whose each connection is,
and passes on what is said on those of this user.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import random
import socket
from collections.abc import Collection

from ...common.background_tasks import Tasks
from ...common.network.packet_filter import admit
from ...common.network.peers import CAN_TELL, stranger_at
from ...common.protocol.failure_reason import Reason

_LOG = logging.getLogger(__name__)

HOST = "127.0.0.1"
_BACKLOG = 1024
_AT_ONCE = 64
"""Connections that are accepted before somebody else is heard."""
_PATIENCE = 5.0
"""Seconds within which the loopback lets a connection through; it takes microseconds."""
_TRIES = 20
"""Ports and addresses that are tried: the port has to be free on both."""


def no_loopback() -> Reason | None:
    """Say so if processes of this machine cannot connect to each other: torch tries for minutes."""
    try:
        with socket.create_server((HOST, 0)) as server:
            socket.create_connection(server.getsockname(), _PATIENCE).close()
    except OSError as error:
        return Reason(
            "no_loopback",
            f"Processes on this machine cannot connect to each other at {HOST}: "
            f"{error.strerror or error}.",
            "The loopback interface may be down: ip link set lo up",
        )
    return None


class StoreProxy:
    """Listens for the clients of one store; made and used in the agent's event loop.

    Parameters
    ----------
    host : str
        Where it listens: on the loopback, or where other nodes reach it.
    nodes : collection of str
        Addresses of the pool's other nodes, whose every user is admitted: our kernel does not know
        whose a connection from there is.

    Attributes
    ----------
    listener : socket.socket
        For rank 0: where it serves the store.
    port : int
        Where clients find it.
    notice : str
        Why the store is not protected; empty if it is.

    Raises
    ------
    OSError
        If no port is free.
    """

    def __init__(self, host: str = HOST, nodes: Collection[str] = ()) -> None:
        self.notice = ""
        self.host = host
        self._nodes = nodes
        self._ports: set[int] = set()
        self._tasks = Tasks()
        self._front: socket.socket | None = None
        self._inner = ""
        if CAN_TELL:
            try:
                self._front, self.listener = _two_listeners(host)
                self._inner = self.listener.getsockname()[0]
            except OSError as error:
                if error.errno == errno.EADDRINUSE:  # another user may have taken all of them
                    raise
                self.notice = (
                    "Other users of this machine can reach the ranks' process group: its store "
                    f"cannot be protected in this sandbox ({error.strerror})."
                )
        if self._front:
            asyncio.get_running_loop().add_reader(self._front, self._accept, self._front)
        else:
            self.listener = socket.create_server((host, 0), backlog=_BACKLOG)
        self.port: int = self.listener.getsockname()[1]

    def _accept(self, front: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                client, (far, *_) = front.accept()
            except BlockingIOError:
                return
            try:
                refused = None if far in self._nodes else stranger_at(client)
            except OSError:  # it has hung up
                refused = "nobody"
            if refused:
                client.close()
            else:
                self._tasks.add(self._join(client))

    async def _join(self, client: socket.socket) -> None:
        """Connect a client with the store, until either hangs up."""
        loop = asyncio.get_running_loop()
        with client, socket.socket() as store:
            client.setblocking(False)
            store.setblocking(False)
            for sock in (client, store):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            store.bind((self._inner, 0))  # nobody else can have that port as long as we have it
            port = store.getsockname()[1]
            self._ports.add(port)
            try:
                self._admit()
            except OSError as error:  # a filter has a greatest length
                self._ports.discard(port)
                _LOG.warning(
                    "The store has %d clients and refuses more: %s", len(self._ports), error
                )
                return
            try:
                await loop.sock_connect(store, (self._inner, self.port))
                ways = [
                    self._tasks.add(_pass_on(client, store)),
                    self._tasks.add(_pass_on(store, client)),
                ]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.wait(ways)
            except OSError:
                pass  # the store has gone, or hears no more clients at once
            finally:
                self._ports.discard(port)
                self._admit()

    def _admit(self) -> None:
        if self.listener.fileno() >= 0:
            admit(self.listener, self._inner, self._ports)

    def close(self) -> None:
        """Let nobody in any more; who is in is out when rank 0 is."""
        if self._front:
            asyncio.get_running_loop().remove_reader(self._front)
            self._front.close()
        self.listener.close()


async def _pass_on(source: socket.socket, target: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):  # one of them was killed
        while data := await loop.sock_recv(source, 1 << 16):
            await loop.sock_sendall(target, data)


def _two_listeners(host: str) -> tuple[socket.socket, socket.socket]:
    """Return the front's and the store's listener, which have the same port.

    The store's is on another address of the loopback, of which there are too many for another user
    to take that port on each.

    Raises
    ------
    OSError
        If there are no filters here, or no port is free.
    """
    for _ in range(_TRIES):
        inner = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}.1"
        front = socket.create_server((host, 0), backlog=_BACKLOG)
        front.setblocking(False)
        store = socket.socket()
        try:
            store.bind((inner, front.getsockname()[1]))
            admit(store, inner, [])
            store.listen(_BACKLOG)
        except OSError as error:
            front.close()
            store.close()
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return front, store
    raise OSError(errno.EADDRINUSE, "no port is free")
