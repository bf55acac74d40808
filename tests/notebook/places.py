"""Where each rank of a notebook's pool is just now, and Stop pressed there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from jupyter_dist_server.client.ranks.rank_connection import RankConnection
from jupyter_dist_server.common.protocol.ranks.rank_messages import RankStatus

from ..notebook_driver import Notebook
from ..result import Result
from ..waiting import PATIENCE, wait_for

Places = Mapping[int, str | int | None]
"""By rank: `IDLE`, `INPUT`, the collective that it waits in, "backward", its line, or any."""
IDLE, INPUT = "idle", "input"
PATIENT = """from jupyter_dist_server.common.patience import patience
patience.answer = patience.busy_answer = 20.0"""
"""Lets a notebook wait longer at Stop for ranks that the machine keeps from answering."""
LOCKED = ["0x80", "0x2"]
"""What a thread waits for that wants a mutex: `FUTEX_WAIT_PRIVATE`, for one that others want."""


def pool_folder(notebook: Notebook) -> Path:
    """Return the private folder of a notebook's pool."""
    file = "%%rank 0\nfrom ipykernel.connect import get_connection_file\nget_connection_file()"
    return Path(notebook.ok(file).lines[-1].split("'")[1]).parent


def stop_at(
    notebook: Notebook, cell: str, places: Places, after: str = "in", locked: int | None = None
) -> Result:
    """Run a cell, and press Stop when its ranks are where they should be.

    They must have printed `after`, if they are not at a line; or it must have been shown. The rank
    `locked` waits in C code for a mutex.
    """
    folder = pool_folder(notebook)
    pid = None if locked is None else pid_of(notebook, locked)
    speakers = {rank for rank, place in places.items() if not isinstance(place, int)}

    def has_begun(shown: Result) -> bool:
        said = shown.said_by(after)
        return bool(said and said >= speakers) or (after != "in" and after in shown.shown)

    def press() -> None:
        wait_until_at(folder, places)
        if pid is not None:
            wait_until_locked(pid)
        notebook.interrupt()

    if locked is None:  # nobody holds the GIL, or is not there: a rank may only be slow
        notebook.ok(PATIENT)
    result = notebook.run(cell, until=has_begun, act=press)
    if locked is None:
        notebook.ok("del patience.answer, patience.busy_answer")
    assert result.status == "error" and "Interrupted" in result.error, result.shown
    return result


def pid_of(notebook: Notebook, rank: int) -> int:
    """Return the process of a rank of a notebook's pool."""
    cell = f"%%rank {rank}\nimport os\nprint('pid', os.getpid())"
    return int(notebook.ok(cell).text.split()[-1])


def wait_until_locked(pid: int) -> None:
    """Return when the main thread of a process waits for a mutex, if we may see that."""
    path = Path(f"/proc/{pid}/syscall")
    with contextlib.suppress(PermissionError):  # Yama may let only a parent look
        wait_for(lambda: path.read_text().split()[2:4] == LOCKED, f"that {pid} waits for a mutex")


def wait_until_at(folder: Path, places: Places) -> None:
    """Return when the ranks of a pool are where they should be."""

    async def is_so() -> bool:
        async with RankConnection(folder) as connection:
            said = await connection.status(PATIENCE, places)
        return all(_is_at(said[rank], place) for rank, place in places.items())

    wait_for(lambda: asyncio.run(is_so()), f"that ranks are at {places}")


def _is_at(status: RankStatus, place: str | int | None) -> bool:
    at = status.whereabouts
    if place is None:
        return True
    if place == IDLE:
        return status.state == IDLE
    if place == INPUT:
        return at.asks
    if isinstance(place, int):
        return at.line == place and not at.call
    return at.call == place or (at.backward and place == "backward")
