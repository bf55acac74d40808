"""torch's store for this pool's process group: a client of the agent's, on a Unix socket.

torch takes any subclass of its ``Store``. Only this user can reach this one, and its waits, as
they are in Python, end by SIGINT and from another thread.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch.distributed as dist

from ...common.patience import patience
from ...common.pool_folder import store_socket
from ...common.protocol.store_messages import (
    FRAME,
    Operation,
    StoreReply,
    StoreRequest,
    frame,
    read_store_reply,
)

_splitting = threading.local()
_KEPT: list[PoolStore] = []
"""All stores: C++ keeps only its own part of one alive, and calls the Python part."""


@contextlib.contextmanager
def rounds() -> Iterator[None]:
    """Number the rounds in which ranks of a split group exchange addresses, in this thread.

    torch uses the same keys for each device. A fast rank would read another rank's address of the
    first round in the second one, and connect to nobody.
    """
    _splitting.told = Counter()
    try:
        yield
    finally:
        del _splitting.told


def _in_round(key: str, sets: bool) -> str:
    """Return the key of the current round."""
    told: Counter[str] | None = getattr(_splitting, "told", None)
    if told is None:
        return key
    group, _, rank = key.rpartition("/")
    if sets:
        told[group] += 1
    return f"{group}/{told[group]}/{rank}"


class PoolStore(dist.Store):
    """The store of the pool, at the agent's Unix socket; each thread has its own connection.

    `on_interrupt` is called if a wait was interrupted: other ranks may have gone on.
    """

    timeout: datetime.timedelta
    """torch's own property."""

    def __init__(
        self, path: str, timeout: datetime.timedelta, on_interrupt: Callable[[], None]
    ) -> None:
        super().__init__()
        self.set_timeout(timeout)
        self._path = path
        self._on_interrupt = on_interrupt
        self._own = threading.local()
        self._open: set[socket.socket] = set()
        """The connections of this store and its clones, which are broken together."""
        self._broken = threading.Event()
        _KEPT.append(self)

    def break_waits(self) -> None:
        """End all waits with an error, and fail what is asked later; on any thread."""
        self._broken.set()
        for sock in list(self._open):
            with contextlib.suppress(OSError):  # its thread was quicker
                sock.shutdown(socket.SHUT_RDWR)

    # -- torch's interface, in Python's spelling -----------------------------------------------

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key."""
        self._ask("set", [key], [value])

    def append(self, key: str, value: str | bytes) -> None:
        """Add to the end of a value."""
        self._ask("append", [key], [value])

    def get(self, key: str) -> bytes:
        """Return a value, once it is there."""
        return self._ask("get", [key], seconds=self.timeout.total_seconds()).values[0]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins with 0, and return it."""
        return self._ask("add", [key], number=amount).number

    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Set a key if it has a value; return its value then."""
        return self._ask("compare_set", [key], [expected, desired]).values[0]

    def check(self, keys: Sequence[str]) -> bool:
        """Tell whether all keys are there."""
        return bool(self._ask("check", keys).number)

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Wait until all keys are there."""
        limit = self.timeout if timeout is None else timeout
        self._ask("wait", keys, seconds=limit.total_seconds())

    def delete_key(self, key: str) -> bool:
        """Forget a key; tell whether it was there."""
        return bool(self._ask("delete", [key]).number)

    def num_keys(self) -> int:
        """Return how many keys there are."""
        return self._ask("list").number

    def list_keys(self) -> list[str]:
        """Return all keys."""
        return self._ask("list").keys

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return values, once they are there."""
        return self._ask("get", keys, seconds=self.timeout.total_seconds()).values

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys."""
        self._ask("set", keys, values)

    def has_extended_api(self) -> bool:
        """Tell that `append`, `multi_get` and `multi_set` are there."""
        return True

    def clone(self) -> PoolStore:
        """Return another client of the same store; both are broken together."""
        other = PoolStore(self._path, self.timeout, self._on_interrupt)
        other._open, other._broken = self._open, self._broken
        return other

    # C++ looks for some of them under its own names.
    deleteKey = delete_key
    getNumKeys = num_keys

    # -- the connection ------------------------------------------------------------------------

    def _ask(
        self,
        do: Operation,
        keys: Sequence[str] = (),
        values: Iterable[str | bytes] = (),
        number: int = 0,
        seconds: float = 0.0,
    ) -> StoreReply:
        raw = [value.encode() if isinstance(value, str) else value for value in values]
        keys = [_in_round(key, do == "set") for key in keys]
        request = StoreRequest(do, keys, raw, number, seconds)
        sock = self._connection()
        if self._broken.is_set():
            raise dist.DistNetworkError("The process group was broken.")
        try:
            sock.settimeout(seconds + patience.program)
            sock.sendall(frame(request))
            reply = read_store_reply(_read(sock, int.from_bytes(_read(sock, FRAME), "big")))
        except BaseException as error:  # a late answer must not be taken for that of a new request
            self._hang_up()
            if not isinstance(error, OSError):
                self._on_interrupt()
                raise
            why = "The process group was broken"
            if not self._broken.is_set():
                why = f"No answer ({error})"
            raise dist.DistNetworkError(f"{why}, in {do} of keys: {', '.join(keys)}") from None
        if reply.failure:
            raise dist.DistStoreError(reply.failure)
        return reply

    def _connection(self) -> socket.socket:
        own: Any = self._own
        if getattr(own, "pid", None) != os.getpid():  # a fork has its parent's
            own.socket, own.pid = socket.socket(socket.AF_UNIX), os.getpid()
            self._open.add(own.socket)
            try:
                own.socket.settimeout(patience.program)
                own.socket.connect(self._path)
            except OSError as error:
                self._hang_up()
                raise dist.DistNetworkError(f"The pool's agent does not answer: {error}") from None
        sock: socket.socket = own.socket
        return sock

    def _hang_up(self) -> None:
        self._open.discard(self._own.socket)
        self._own.socket.close()
        self._own.pid = None


def _read(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        if not (part := sock.recv(size - len(parts))):
            raise ConnectionResetError("the agent has hung up")
        parts += part
    return bytes(parts)


class StoreOfPool:
    """Where this rank finds the store: at its agent, or at rank 0 if that serves a ``TCPStore``.

    `tcp` is the address of the ``TCPStore``, and `port` its port.
    """

    def __init__(
        self, folder: Path, tcp: tuple[str, int] | None, rank: int, world_size: int
    ) -> None:
        self._path = str(store_socket(folder))
        self._tcp = tcp
        self.port = tcp and tcp[1]
        self._current: dist.Store | None = None
        if tcp and rank == 0:
            self._server = dist.TCPStore(
                *tcp, world_size, is_master=True, wait_for_workers=False, multi_tenant=True
            )

    def open(self, timeout: datetime.timedelta, on_interrupt: Callable[[], None]) -> dist.Store:
        """Return a new client for one group; see `PoolStore`."""
        if self._tcp:
            self._current = dist.TCPStore(*self._tcp, timeout=timeout, wait_for_workers=False)
        else:
            self._current = PoolStore(self._path, timeout, on_interrupt)
        return self._current

    def break_waits(self) -> None:
        """End all waits in the store for the last group, and fail those to come."""
        if isinstance(self._current, PoolStore):
            self._current.break_waits()
