"""The line of those who wait for GPUs, across processes and users."""

from __future__ import annotations

import os
import pwd
import signal
from pathlib import Path
from typing import Any

from jupyter_dist_server.jobs.line import Ticket, in_line

from .conftest import Child


def who(pool: str) -> dict[str, Any]:
    return {"pool": pool, "pid": os.getpid(), "since": 1.0, "notebook": "a.ipynb", "host": "h"}


def queue(pool: str, *uuids: str, user: int | None = None) -> Child:
    return Child(lambda: Ticket(who(pool), uuids or ("GPU-0",)), user)


def pools() -> list[str]:
    return [waiting["pool"] for waiting in in_line()]


def test_who_comes_first_is_first_whoever_that_is(leases: Path) -> None:
    others = [0, 65534] if os.getuid() == 0 else [None, None]
    children = [queue(f"p-{n}", user=others[n % 2]) for n in range(4)]
    assert pools() == ["p-0", "p-1", "p-2", "p-3"]
    if os.getuid() == 0:
        users = [pwd.getpwuid(user or 0).pw_name for user in (0, 65534, 0, 65534)]
        assert [waiting["user"] for waiting in in_line()] == users
    with Ticket(who("p-4"), ["GPU-1", "GPU-0"]) as ticket:
        assert [waiting["pool"] for waiting in ticket.ahead()] == ["p-0", "p-1", "p-2", "p-3"]
        assert in_line()[-1]["gpus"] == ["GPU-0", "GPU-1"]
    for child in children:
        child.kill()


def test_whoever_is_killed_or_gives_up_has_left_the_line(leases: Path) -> None:
    first, second = queue("p-0"), queue("p-1")
    ticket = Ticket(who("p-2"), ["GPU-0"])
    first.kill()
    assert [waiting["pool"] for waiting in ticket.ahead()] == ["p-1"]
    second.kill()
    assert ticket.ahead() == []
    with ticket:
        assert pools() == ["p-2"]
    assert pools() == []
    assert [*leases.iterdir()] == []


def test_a_process_that_is_stopped_does_not_stop_the_line(leases: Path) -> None:
    first, ticket = queue("p-0"), Ticket(who("p-1"), ["GPU-0"])
    os.kill(first.pid, signal.SIGSTOP)
    assert pools() == ["p-0", "p-1"]
    for file in leases.iterdir():
        os.utime(file, (0, file.stat().st_mtime - 16))
    assert pools() == []
    assert ticket.ahead() == []
    assert pools() == ["p-1"], "asking is the sign of life"
    first.kill()
