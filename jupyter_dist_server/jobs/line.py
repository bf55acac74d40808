"""The line of those who wait for GPUs: one for the whole host, first come, first served.

A place in it is a file that counts while its process lives; the names of the files are the order.
Somebody waits only behind those who want one of the same GPUs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from .held_file import HeldFile, held_files
from .shared_folder import folder

_TICKET = ".ticket"
_PATIENCE = 15.0
"""Seconds without a beat after which a process is not waited for: it was stopped, or hangs."""


def in_line(before: str | None = None) -> list[dict[str, Any]]:
    """Return who waits, the first one first.

    Parameters
    ----------
    before : str or None
        A place in the line; only those before it count.

    Returns
    -------
    list of dict
        ``{user, pid, since, pool, notebook, host, gpus}``; `gpus` are the UUIDs that are wanted.
    """
    return [
        who
        for who in held_files(folder(), _TICKET)
        if (before is None or who["file"] < before) and time.time() - who["beat"] < _PATIENCE
    ]


class Ticket:
    """A place in the line, from now until it is given up, or this process ends.

    Parameters
    ----------
    who : dict
        What others are told, as for `Lease.take`.
    uuids : iterable of str
        The GPUs that are wanted, or some of them.
    """

    def __init__(self, who: dict[str, Any], uuids: Iterable[str]) -> None:
        self._name = f"{time.time_ns():020d}-{who['pool']}{_TICKET}"
        self._path = folder() / self._name
        self._file = HeldFile.create(self._path, who | {"gpus": sorted(uuids)})

    def ahead(self) -> list[dict[str, Any]]:
        """Return who comes first, as `in_line` does; to be called every second or so."""
        self._file.beat()
        return in_line(self._name)

    def __enter__(self) -> Ticket:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._path.unlink(missing_ok=True)
        self._file.file.close()
