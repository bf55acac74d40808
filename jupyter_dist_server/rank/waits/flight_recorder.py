"""torch's flight recorder in this rank: switched on, served to other processes, and read.

A C++ thread serves it on a Unix socket in the pool's private folder, so it answers also while the
main thread holds the GIL. A signal writes Python's stack then.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...common.ask_from_outside import RECORDED, STACK_SIGNAL
from ...common.pool_folder import recorder_socket, stack_file
from ...common.recorded_collectives import TorchDump, TorchEntry, is_undone, read_unpickled
from ..torch_internals import dump_recorded, serve_recorded

_SERVED: list[Any] = []  # the servers, for as long as the process lives
_LEARNS_LINES, _KNOWS_LINES = threading.Event(), threading.Event()
"""Whether torch has begun, and is ready, to report the lines of collectives."""


def switch_on() -> None:
    """Let torch record collectives, unless the user has set how many; before there is a group."""
    os.environ.setdefault("TORCH_FR_BUFFER_SIZE", str(RECORDED))


def serve(folder: Path, rank: int) -> None:
    """Serve the recorder, and write Python's stack at a signal."""
    socket = recorder_socket(folder, rank)
    socket.unlink(missing_ok=True)  # of the rank that this one replaces
    try:
        with quiet_stderr():
            _SERVED.append(serve_recorded(str(socket)))
    except RuntimeError:
        socket.touch()  # its error, unlike torch's, says what is wrong with the folder
        raise
    if sys.platform == "linux":
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        file = os.open(stack_file(folder, rank), flags, 0o600)
        faulthandler.register(STACK_SIGNAL, file, all_threads=False)


def recorded(learn_lines: bool) -> TorchDump | None:
    """Return what is recorded; `None` if torch has no recorder.

    torch takes seconds to report lines of code for the first time, and no C++ exception can be
    raised meanwhile: Stop would not end a collective. So a thread begins with that only if it may
    `learn_lines`: in a script, or while no cell runs. The line of a cell that waits is known from
    its stack.
    """
    found = _read(lines=_KNOWS_LINES.is_set())
    if found is None or _KNOWS_LINES.is_set() or not any(is_undone(e) for e in found.entries):
        return found
    if learn_lines and not _LEARNS_LINES.is_set():
        _LEARNS_LINES.set()
        threading.Thread(target=_learn_lines, name="dist lines", daemon=True).start()
    return found


def recorded_since(moment: float) -> list[TorchEntry]:
    """Return the collectives that began after a time (seconds since 1970), in order."""
    found = _read(lines=False)
    entries = found.entries if found else []
    return [e for e in entries if e.time_created_ns >= moment * 1e9 and not e.is_p2p]


def pickled_dump(groups: dict[str, tuple[list[int], str]]) -> bytes | None:
    """Return what is recorded as torch pickles it, with the ranks and names of its groups.

    gloo's dump lacks these; without them, torch's ``torchfrtrace`` matches nothing.
    """
    dumps = [pickle.loads(dump) for dump in dump_recorded(_KNOWS_LINES.is_set())]
    if not dumps:
        return None
    known = {
        name: {"name": name, "desc": description, "ranks": str(ranks)}
        for name, (ranks, description) in groups.items()
    }
    entries = [entry for dump in dumps for entry in dump.get("entries", [])]
    return pickle.dumps(dumps[0] | {"entries": entries, "pg_config": known})


def _learn_lines() -> None:
    _read(lines=True)
    _KNOWS_LINES.set()


def _read(lines: bool) -> TorchDump | None:
    dumps = [read_unpickled(pickle.loads(dump)) for dump in dump_recorded(lines)]
    return TorchDump([entry for dump in dumps for entry in dump.entries]) if dumps else None


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Drop what C++ writes to stderr: notes that it listens, or profiles."""
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
