"""Which user is at the other end of a connection, as the kernel says.

For a Unix socket, ``SO_PEERCRED`` tells, see unix(7); for a TCP connection within this machine,
the kernel's tables of sockets, see sock_diag(7), which exist only on Linux.
"""

from __future__ import annotations

import functools
import os
import pwd
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

CAN_TELL = sys.platform == "linux"
"""Whether the kernel says who is at the other end of a TCP connection."""
DISCONNECTED = "a process that has disconnected"
_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
_ESTABLISHED, _SYN_RECEIVED, _LISTEN = 1, 3, 10


class End(NamedTuple):
    """The socket at the other end of a connection."""

    state: int
    uid: int
    inode: int
    """0 if no process has it: it was closed, or was not accepted yet."""


def user_name(uid: int) -> str:
    """Return a user's name and number."""
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:  # in a container, a user of the host's
        return f"uid {uid}"


def _credentials(sock: socket.socket) -> tuple[int, int, int]:
    """Return the pid, uid and gid at the other end of a Unix socket (Linux)."""
    said = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, gid = struct.unpack("3i", said)
    return pid, uid, gid


def unix_peer(sock: socket.socket) -> int:
    """Return the uid of the process at the other end of a Unix socket."""
    if sys.platform == "linux":
        return _credentials(sock)[1]
    else:
        LOCAL_PEERCRED, size = 1, 128  # of macOS and BSD: struct xucred begins with version and uid
        return int(struct.unpack_from("Ii", sock.getsockopt(0, LOCAL_PEERCRED, size))[1])


def unix_peer_pid(sock: socket.socket) -> int:
    """Return the process that has connected a Unix socket, or serves it."""
    if sys.platform == "linux":
        return _credentials(sock)[0]
    else:
        LOCAL_PEERPID = 2  # of macOS
        return sock.getsockopt(0, LOCAL_PEERPID)


def check_unix_peer(sock: socket.socket) -> None:
    """Raise `PermissionError` if another user has the other end of a Unix socket."""
    if (uid := unix_peer(sock)) != os.getuid():
        raise PermissionError(1, f"{user_name(uid)} is at the other end")


def stranger_at(sock: socket.socket, patience: float = 0.0) -> str | None:
    """Name the other user who may have the other end of a TCP connection on this machine.

    `None` is returned if this user has it, and the connection stands. Until a listener accepts a
    connection, for which it has `patience` seconds, the other end has no owner.
    """
    near, far = _address(sock.getsockname()), _address(sock.getpeername())
    deadline = time.monotonic() + patience
    while True:
        end = _look_up(far, near)
        if end is None or end.state not in (_ESTABLISHED, _SYN_RECEIVED):
            return DISCONNECTED
        # The other end is in the middle of the handshake while its listener drops our answer.
        if end.inode and end.state == _ESTABLISHED:
            return None if end.uid == os.getuid() else user_name(end.uid)
        if time.monotonic() > deadline:
            return "a process that does not accept the connection"
        time.sleep(0.001)


def listener_uid(host: str, port: int) -> int | None:
    """Return the uid that listens on an address of this machine; `None` if none does."""
    end = _look_up(_address((host, port)), _address(("::" if ":" in host else "0.0.0.0", 0)))
    return end.uid if end and end.state == _LISTEN and end.inode else None


Address = tuple[int, bytes, int]
"""Family, packed address and port."""


def _address(name: tuple[Any, ...]) -> Address:
    host, port = str(name[0]).partition("%")[0].removeprefix("::ffff:"), int(name[1])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return family, socket.inet_pton(family, host), port


def _look_up(wanted: Address, other: Address) -> End | None:
    """Return the socket that has one address, and is connected to another one."""
    try:
        found = _ask_kernel(wanted, other)
    except OSError:  # a sandbox without these sockets; the same is in a file
        return _read_table(wanted, other)
    return found if found or _kernel_answers() else _read_table(wanted, other)


@functools.cache
def _kernel_answers() -> bool:
    """Tell whether the kernel finds a socket: without its module tcp_diag it says there is none."""
    with socket.create_server(("127.0.0.1", 0)) as ours:
        return _ask_kernel(_address(ours.getsockname()), _address(("0.0.0.0", 0))) is not None


def _ask_kernel(wanted: Address, other: Address) -> End | None:
    family, local, port = wanted
    _, remote, remote_port = other
    about = struct.pack(">HH16s16s", port, remote_port, local, remote)
    request = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + about
    request += struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # no interface, no cookie
    head = struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(head + request)
        answer = kernel.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != _BY_FAMILY:
        (error,) = struct.unpack_from("=i", answer, 16)
        if -error == 2:  # ENOENT
            return None
        raise OSError(-error, os.strerror(-error))
    state = answer[17]
    uid, inode = struct.unpack_from("=II", answer, 16 + 64)
    return End(state, uid, inode)


def _read_table(wanted: Address, other: Address) -> End | None:
    listening = None
    everywhere = {("0.0.0.0", wanted[2]), ("::", wanted[2])}
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            name = _parsed(fields[1])
            end = End(int(fields[3], 16), int(fields[7]), int(fields[9]))
            if _address(name) == wanted and _address(_parsed(fields[2])) == other:
                return end
            if end.state == _LISTEN and (_address(name) == wanted or name in everywhere):
                listening = end
    return listening


def _parsed(text: str) -> tuple[str, int]:
    host, _, port = text.partition(":")
    packed = b"".join(
        int(host[i : i + 8], 16).to_bytes(4, sys.byteorder) for i in range(0, len(host), 8)
    )
    family = socket.AF_INET6 if len(packed) == 16 else socket.AF_INET
    return socket.inet_ntop(family, packed), int(port, 16)
