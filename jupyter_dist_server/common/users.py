"""Users of this machine, and their groups."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import time
from functools import lru_cache


@lru_cache(maxsize=1024)
def name_of(user: int) -> str:
    """Return the name of a user."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # in a container, a user of the host's
        return str(user)


def groups_of(user: str) -> frozenset[str]:
    """Return the names of a user's groups; none of a user whom this machine does not know."""
    return _groups_of(user, int(time.monotonic() // 60))  # they may change


@lru_cache(maxsize=1024)
def _groups_of(user: str, _: int) -> frozenset[str]:
    try:
        ids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return frozenset()
    names = set()
    for id in ids:
        with contextlib.suppress(KeyError):  # a group without a name
            names.add(grp.getgrgid(id).gr_name)
    return frozenset(names)
