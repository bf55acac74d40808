"""Where a user's queue is on this machine."""

from __future__ import annotations

import binascii
import contextlib
import os
from pathlib import Path

KEPT_GPUS = "gpus.json"
"""The file of the GPUs that were read last, see `gpu_list`."""
_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "fuse.sshfs", "ceph", "afs", "9p")
"""Kinds of filesystems on which SQLite's locks cannot be relied on."""


def store_folder() -> Path:
    """Return the folder of the user's queue: one for each machine, on a local disk.

    It is ``$XDG_STATE_HOME/jupyter-dist/MACHINE``, by default in ``~/.local/state``, or
    ``/var/tmp/jupyter-dist-UID`` if that is on a network filesystem.
    """
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    if on_network(state):
        return Path(f"/var/tmp/jupyter-dist-{os.getuid()}")
    return state / "jupyter-dist" / _machine()


def _machine() -> str:
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            if name := Path(path).read_text().strip():
                return name
    return os.uname().nodename


def filesystem(path: Path) -> str:
    """Return the kind of the filesystem that a path is on, or would be."""
    path = path.resolve()
    best = ("", "")
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, where, kind, *_ = line.split()
            where = where.replace("\\040", " ")
            if path.is_relative_to(where) and len(where) >= len(best[0]):
                best = (where, kind)
    return best[1]


def on_network(path: Path) -> bool:
    """Tell whether a path is on a network filesystem."""
    return filesystem(path).startswith(_NETWORK)


def other_machines(folder: Path) -> int:
    """Return how many other machines have a queue in the same shared home."""
    return sum(path.parent != folder for path in folder.parent.glob("*/queue.db"))


def store_name(folder: Path) -> str:
    """Return the name that tells a queue from another one of the same user."""
    # No cryptographic hash: it tells the few queues of one user apart, and OpenSSL loads slowly.
    return f"{binascii.crc32(os.fsencode(folder.absolute())):08x}"
