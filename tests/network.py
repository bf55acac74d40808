"""Ports, and a loopback interface of our own: who connects to every port disturbs no other test."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_THIS = "/proc/thread-self/ns/net"


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def this_network() -> str:
    """Return which network namespace this thread is in; empty where there are none."""
    try:
        return os.readlink(_THIS)
    except FileNotFoundError:
        return ""


@contextmanager
def own_network(*, up: bool = True) -> Iterator[None]:
    """Have this thread, and what it starts, in a network namespace of its own, where we may.

    Its loopback interface is `up`, or not.
    See https://man7.org/linux/man-pages/man7/network_namespaces.7.html.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open(_THIS, os.O_RDONLY) if this_network() else -1
    if before < 0 or libc.unshare(_CLONE_NEWNET):
        yield
        return
    try:
        with socket.socket() as sock:
            request = struct.pack("16sh14x", b"lo", _IFF_UP if up else 0)
            fcntl.ioctl(sock, _SIOCSIFFLAGS, request)
        yield
    finally:
        _checked(libc.setns(before, _CLONE_NEWNET))
        os.close(before)


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
