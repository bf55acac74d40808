"""A cable that takes its time: what enters at one end leaves at the other a little later.

``python -m tests.cluster.slow_link HERE THERE PID SECONDS`` makes a network device in this
namespace, and one in that of a process. They last as long as the program. `netem` would do, but
not every kernel has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

_TUNSETIFF = 0x400454CA
_TAP = 0x0002 | 0x1000  # IFF_TAP | IFF_NO_PI
_FRAME = 1 << 16
_AT_ONCE = 64
"""Frames that are read before those that are due go on."""


def device(name: str) -> int:
    """Make a network device; return the descriptor of what goes in and out."""
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP))
    return end


def enter(pid: int) -> None:
    """Move to the network of a process."""
    with open(f"/proc/{pid}/ns/net") as network:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(network.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns failed")


def carry(here: int, there: int, seconds: float) -> None:
    """Carry frames both ways, until the program is ended."""
    other_end = {here: there, there: here}
    under_way: deque[tuple[float, int, bytes]] = deque()
    while True:
        left = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select([here, there], [], [], left)[0]:
            with contextlib.suppress(BlockingIOError):
                for _ in range(_AT_ONCE):
                    frame = os.read(end, _FRAME)
                    under_way.append((time.monotonic() + seconds, other_end[end], frame))
        while under_way and under_way[0][0] <= time.monotonic():
            _, end, frame = under_way.popleft()
            with contextlib.suppress(OSError):  # a device that is down takes nothing
                os.write(end, frame)


def main() -> None:
    """Make the cable."""
    here, there, pid, seconds = sys.argv[1:]
    outer = device(here)
    enter(int(pid))
    inner = device(there)
    print("made", flush=True)
    carry(outer, inner, float(seconds))


if __name__ == "__main__":
    main()
