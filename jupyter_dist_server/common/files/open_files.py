"""The limit of open files, sockets included."""

from __future__ import annotations

import contextlib
import os
import resource

from ..errors import DistError

CLIENT_EACH = 10
"""Descriptors that a client has for each rank: five sockets, each with a connection."""
SERVER_EACH = 14
"""The same for a server, which runs code by REST, and watches which ranks are busy."""
_ENOUGH = 1 << 16
"""More is of no use; some programs close all descriptors that they might have, one by one."""
_MACOS = 10_240
"""What macOS allows in any case, although it says that there is no limit."""
_SPARE = 64


def raise_limit() -> int:
    """Raise this process's soft limit as far as it may and is of use; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    endless = resource.RLIM_INFINITY
    most = _ENOUGH if hard == endless else min(hard, _ENOUGH)
    for more in (most, min(most, _MACOS)):
        if soft == endless or soft >= more:
            break
        with contextlib.suppress(ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    return _ENOUGH if soft == endless else soft


def check_open_files(ranks: int, each: int) -> None:
    """Raise `DistError` if this process may not open `each` files for so many more ranks."""
    limit = raise_limit()
    used = len(os.listdir("/dev/fd"))
    needed = used + ranks * each + _SPARE
    if needed > limit:
        possible = max(0, (limit - used - _SPARE) // each)
        raise DistError(
            "too_many_files",
            f"{ranks} ranks need {needed:,} open files in this process; its limit is {limit:,}.",
            f"Start at most {possible} ranks, or raise the hard limit (ulimit -Hn) and restart "
            "Jupyter.",
            field="num_ranks",
        )
