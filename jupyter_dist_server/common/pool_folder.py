"""The pool's private folder with sockets, keys and logs."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from .errors import DistError
from .protocol.decode_message import reader
from .protocol.node_addresses import RankAddress
from .protocol.pool_file import CONFIG, PoolFile, decode_pool_file

SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103
"""Bytes in a Unix socket's path: ``sizeof(sun_path) - 1``."""

CHANNELS = {"shell": 1, "iopub": 2, "stdin": 3, "control": 4, "hb": 5, "cells": 6, "pipe": 7}
"""Jupyter's ``ipc`` transport numbers the sockets of a kernel as if they were ports; the last
two are ours, see `cell_runner` and `ipykernel_internals`."""
_OURS = ("cells", "pipe")

AGENT_SOCKET = "agent.sock"
PREFIX = "jdist-"
ORDERS = "agent.json"
"""What a zygote gives to a new agent: its environment and working directory."""
_ADDRESSES = "addresses.json"
REMOTE_CHANNELS = ("shell", "iopub", "stdin", "control", "cells")
"""Those that a rank on another node serves."""
_FRAME = re.compile(r"frame #\d+: |<omitting python frames>|Exception raised from ")
"""Lines of a stack in C++ that torch adds to its errors, below the message."""
_TAIL = 1 << 16
"""Bytes of a log in which its last lines are looked for."""


def create_folder() -> Path:
    """Make a folder that only this user can open; raises `DistError` if it cannot be used."""
    try:
        parent = tempfile.gettempdir()
    except OSError as error:  # it tries some, and can write to none
        raise unwritable(os.environ.get("TMPDIR", "/tmp"), error) from error
    folder = Path(parent, PREFIX + "xxxxxxxx")
    sockets = folder / AGENT_SOCKET, recorder_socket(folder, 9999)
    if max(len(os.fsencode(path)) for path in sockets) > SOCKET_PATH_LIMIT:
        raise DistError(
            "path_too_long",
            f"The path of the temporary folder {parent} is too long: the paths of a pool's sockets "
            f"are limited to {SOCKET_PATH_LIMIT} bytes.",
            "Set the environment variable TMPDIR to a shorter path, such as /tmp.",
        )
    try:
        return Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
    except OSError as error:
        raise unwritable(parent, error) from error


def our_folders() -> Iterator[Path]:
    """Yield the private folders of this user's pools."""
    with os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):  # gone by now
                    if _is_private(entry.stat(follow_symlinks=False)):
                        yield Path(entry)


def _is_private(about: os.stat_result) -> bool:
    only_ours = about.st_uid == os.getuid() and not about.st_mode & 0o077
    return stat.S_ISDIR(about.st_mode) and only_ours


def read_config(folder: Path) -> PoolFile:
    """Return what the owner of a pool wrote into its folder.

    Raises `OSError` if the folder is not this user's, or the pool has ended; `ValueError` if it
    is no such file; `OtherVersion` if another version of this package wrote it.
    """
    where = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not _is_private(os.fstat(where)):
            raise PermissionError(1, f"{folder} is not private to this user")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(CONFIG, flags, dir_fd=where), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_uid != os.getuid():
                raise PermissionError(1, f"{folder / CONFIG} does not belong to this user")
            return decode_pool_file(file.read())
    finally:
        os.close(where)


def write_private(path: Path, content: Any) -> None:
    """Write JSON that only this user can read; raises `DistError` if the disk is full."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(msgspec.json.encode(content))
    except OSError as error:
        raise unwritable(str(path.parent), error) from error


def rewrite_config(folder: Path, config: PoolFile) -> None:
    """Replace the description of a pool atomically; raises `DistError` if the disk is full."""
    _rewrite(folder / CONFIG, config)


def _rewrite(path: Path, content: Any) -> None:
    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)  # a full disk may have left one
        write_private(fresh, content)
        fresh.rename(path)
    except OSError as error:
        raise unwritable(str(path.parent), error) from error


def unwritable(where: str, error: OSError) -> DistError:
    """Return the error for a temporary folder that cannot be written."""
    return DistError(
        "folder_unwritable",
        f"The pool needs a temporary folder, and {where} cannot be written: {error.strerror}.",
        "Free some space, or set TMPDIR to another folder.",
    )


def new_key() -> str:
    """Return a key for signing the messages of one pool (HMAC-SHA256)."""
    return secrets.token_hex(32)


def rank_connection(
    folder: Path, rank: int, key: str, address: RankAddress | None = None
) -> dict[str, Any]:
    """Return the content of a rank's Jupyter connection file."""
    numbers = address.ports if address else CHANNELS
    ports = {f"{name}_port": port for name, port in numbers.items() if name not in _OURS}
    return ports | {
        "transport": "tcp" if address else "ipc",
        "ip": address.host if address else str(folder / f"r{rank}"),
        "key": key,
        "signature_scheme": "hmac-sha256",
        "kernel_name": f"rank {rank}",
    }


def write_addresses(folder: Path, addresses: dict[int, RankAddress]) -> None:
    """Note where the ranks of other nodes listen."""
    _rewrite(folder / _ADDRESSES, addresses)


_read_addresses: Callable[[bytes], dict[int, RankAddress]] = reader(dict[int, RankAddress])


def read_addresses(folder: Path) -> dict[int, RankAddress]:
    """Return where the ranks of other nodes listen, as far as that is known."""
    try:
        return _read_addresses((folder / _ADDRESSES).read_bytes())
    except FileNotFoundError:
        return {}


def endpoint(folder: Path, rank: int, channel: str, address: RankAddress | None = None) -> str:
    """Return the ZMQ endpoint of one channel of one rank."""
    if address:
        return f"tcp://{address.host}:{address.ports[channel]}"
    return f"ipc://{folder / f'r{rank}'}-{CHANNELS[channel]}"


def recorder_socket(folder: Path, rank: int) -> Path:
    """Return where a rank's flight recorder can be asked, also while it holds the GIL."""
    return folder / f"r{rank}-fr"


def store_socket(folder: Path) -> Path:
    """Return where the agent serves the store of the process group."""
    return folder / "store"


def stack_file(folder: Path, rank: int) -> Path:
    """Return where a rank writes its main thread's stack at a `STACK_SIGNAL`."""
    return folder / f"rank-{rank}.stack"


def memory_file(folder: Path, rank: int) -> Path:
    """Return where a rank writes what filled the memory of its GPU, for torch's viewer."""
    return folder / f"memory-{rank}.pickle"


def log_tail(path: Path, lines: int = 12) -> list[str]:
    """Return the last non-empty lines of a log without stacks in C++, none if there is no log."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL))
            text = log.read(_TAIL).decode(errors="replace")
    except FileNotFoundError:
        return []
    said = (line for line in text.splitlines() if line.strip() and not _FRAME.match(line))
    return [*said][-lines:]


_CLOCK = "clock"


def write_ahead(folder: Path, seconds: float) -> None:
    """Note by how many seconds the clock of this node is ahead of the first node's."""
    fresh = folder / f"{_CLOCK}.new"
    fresh.write_text(repr(seconds))
    fresh.rename(folder / _CLOCK)


def read_ahead(folder: Path) -> float:
    """Return by how many seconds this clock is ahead; 0 on the first node, and if not known."""
    try:
        return float((folder / _CLOCK).read_text())
    except (OSError, ValueError):
        return 0.0
