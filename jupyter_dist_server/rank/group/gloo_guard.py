"""No process of another user becomes a member of a rank's gloo groups.

gloo accepts any process that connects to its listener and names a pair that it waits for. So when
the pairs of a group are there, and before anything is sent on them, we ask the kernel who owns
them. NCCL needs no such guard: its connections begin with a number that ranks exchange in the
store, which only this user can read.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from typing import Any

from ...common.errors import DistError
from ...common.patience import patience
from ...common.peers import CAN_TELL, DISCONNECTED, stranger_at
from ..torch_internals import wrap_gloo

Connection = tuple[tuple[Any, ...], tuple[Any, ...]]
"""Local and remote address: they name a connection; a descriptor may be used again."""


def connections() -> Iterator[tuple[Connection, socket.socket]]:
    """Yield the TCP connections of this process, each with a socket that lives until the next."""
    for sock in _sockets():
        with contextlib.suppress(OSError):  # not connected
            yield (sock.getsockname(), sock.getpeername()), sock


def _sockets() -> Iterator[socket.socket]:
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError):  # closed meanwhile, or no socket
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as sock:
                    if sock.family in (socket.AF_INET, socket.AF_INET6):
                        yield sock


class GlooGuard:
    """Guards all gloo groups of this process from now on.

    Our kernel does not know who owns connections from `nodes`, the pool's other nodes.
    """

    def __init__(self, rank: int, world_size: int, nodes: Collection[str] = ()) -> None:
        self._rank = rank
        self.world_size = world_size
        self._nodes = nodes
        self._listeners: set[int] = set()  # inodes of gloo's listeners
        self._members: set[int] = set()  # inodes of connections that were checked
        self._making: list[set[int]] = []
        """For each group that is being made, the sockets that existed before."""
        self._ended = 0  # how often `end_connecting` ended that
        wrap_gloo(self._guarded)

    def _guarded(self, make: Callable[..., Any], opened: bool = False) -> Callable[..., Any]:
        """Check each group that is made; `opened` if it uses the listeners of another group."""
        from .pool_store import rounds

        @wraps(make)
        def guarded(*arguments: Any, **options: Any) -> Any:
            # gloo would connect at the first collectives, after the check.
            os.environ.pop("TORCH_GLOO_LAZY_INIT", None)
            before, ended = {_inode(sock) for sock in _sockets()}, self._ended
            self._making.append(before)
            try:
                with rounds() if opened else contextlib.nullcontext():
                    made = make(*arguments, **options)
            finally:
                self._making.remove(before)
            if self._ended != ended:
                raise RuntimeError("The group was broken while it was made.")
            if not opened:
                self._listeners |= {_inode(sock) for sock in _sockets() if _listens(sock)} - before
            if CAN_TELL:
                self._check(before, opened)
            return made

        return guarded

    def end_connecting(self) -> None:
        """Make groups fail that are being made; on any thread.

        gloo waits for pairs until the group's time limit, half an hour, and nothing ends that. So
        we connect in their place, and hang up.
        """
        if not self._making:
            return
        self._ended += 1
        before = set.intersection(*self._making)
        for sock in _sockets():
            if _listens(sock) and _inode(sock) not in before:
                for pair in range(self.world_size):
                    with contextlib.suppress(OSError), socket.socket(sock.family) as end:
                        end.settimeout(patience.instant)
                        end.connect(sock.getsockname())
                        end.sendall(struct.pack("<Q", pair))

    def _check(self, before: set[int], opened: bool) -> None:
        """Refuse the group if another user may be in it.

        A stranger that came through an older listener is shut out now; only a group that is split
        reads what it sent. Clients of other listeners, such as the store's, may have come and gone.
        """
        listeners = {_inode(s): s.getsockname()[1] for s in _sockets() if _listens(s)}
        ports = {port for inode, port in listeners.items() if inode in self._listeners}
        others = {*listeners.values()} - ports
        checked, strangers = set(), []
        for ((near, port, *_), (far, *_)), sock in connections():
            inode = _inode(sock)
            is_local = near == far or str(far).removeprefix("::ffff:").startswith(("127.", "::1"))
            if inode in self._members or not (port in ports or (is_local and inode not in before)):
                checked |= {inode} & self._members
            elif str(far).removeprefix("::ffff:") in self._nodes:
                checked.add(inode)
            # Long enough for a busy rank, which must not be taken for a stranger.
            elif stranger := stranger_at(sock, patience.program):
                if stranger == DISCONNECTED and port in others:
                    continue
                with contextlib.suppress(OSError):  # the other end was quicker
                    sock.shutdown(socket.SHUT_RDWR)
                if opened or inode not in before:
                    strangers.append(stranger)
            else:
                checked.add(inode)
        self._members = checked
        if strangers:
            raise DistError(
                "stranger_refused",
                f"Perhaps another user connected to the process group of rank {self._rank}: at the "
                f"other end is {strangers[0]}. The rank ended the group and read nothing from it.",
                "Try again. If it happens again, tell the machine's administrator.",
            )


def _inode(sock: socket.socket) -> int:
    return os.fstat(sock.fileno()).st_ino


def _listens(sock: socket.socket) -> bool:
    return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
