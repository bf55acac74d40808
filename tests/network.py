"""A loopback interface of our own: a stranger who connects to every port disturbs no other test."""

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


@contextmanager
def own_network() -> Iterator[None]:
    """Have this thread, and what it starts, in a network namespace of its own, if we are root.

    See https://man7.org/linux/man-pages/man7/network_namespaces.7.html.
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _checked(libc.unshare(_CLONE_NEWNET))
        with socket.socket() as sock:
            request = struct.pack("16sh14x", b"lo", _IFF_UP)
            fcntl.ioctl(sock, _SIOCSIFFLAGS, request)
        yield
    finally:
        _checked(libc.setns(before, _CLONE_NEWNET))
        os.close(before)


def _checked(result: int) -> None:
    if result:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
