"""Filters on TCP listeners: the kernel drops what they do not admit, as if nobody listened.

Any process may put one on its own socket; a connection keeps the filter that the listener had when
it was made. See https://docs.kernel.org/networking/filter.html.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
from collections.abc import Collection

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_LOAD_WORD, _LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x28, 0x15, 0x06
_SOURCE_ADDRESS = 0x100000000 - 0x100000 + 12
"""Where it is in the IP header, counted from SKF_NET_OFF."""
_DROP, _ADMIT = (_RETURN, 0, 0, 0), (_RETURN, 0, 0, 0xFFFF)


def admit_none(listener: socket.socket) -> None:
    """Let nobody connect any more; connections that stand are not touched."""
    _attach(listener, [_DROP])


def admit_all(listener: socket.socket) -> None:
    """Let everybody connect again."""
    with contextlib.suppress(OSError):  # it has no filter
        listener.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)


def admit(listener: socket.socket, host: str, ports: Collection[int]) -> None:
    """Admit what comes from some ports of one IPv4 address alone, all of them bound by us."""
    (address,) = struct.unpack(">I", socket.inet_aton(host))
    program = [(_LOAD_WORD, 0, 0, _SOURCE_ADDRESS), (_JUMP_IF_EQUAL, 1, 0, address), _DROP]
    program.append((_LOAD_HALF, 0, 0, 0))  # the source port
    for port in ports:
        program += [(_JUMP_IF_EQUAL, 0, 1, port), _ADMIT]
    _attach(listener, [*program, _DROP])


def _attach(listener: socket.socket, program: list[tuple[int, int, int, int]]) -> None:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    filter_program = struct.pack("HP", len(program), ctypes.addressof(code))
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)
