"""Pools that are running already: found by their private folders, checked, and looked at."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .folder import AGENT_SOCKET, our_folders, read_config
from .peers import check_unix_peer
from .processes import boot_id

_SWEEP_AFTER = 60.0
"""Seconds for which a folder without an agent is left alone: one may be about to listen there."""
_ANSWER = 2.0
"""Seconds within which an agent says how it is."""


@dataclass(frozen=True)
class Found:
    """One pool whose agent answers."""

    folder: Path
    config: dict[str, Any]
    snapshot: dict[str, Any]
    """What its agent said just now."""

    @property
    def id(self) -> str:
        """The pool's id."""
        name: str = self.config["id"]
        return name

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """The kernels that hold it, each once."""
        holders = self.snapshot["holders"]
        return list({who["pid"]: who for who in holders if who["as"] == "kernel"}.values())

    @property
    def served(self) -> bool:
        """Whether a server holds it."""
        return any(who["as"] == "server" for who in self.snapshot["holders"])


def find_pools() -> Iterator[Found]:
    """Yield the running pools of this user on this machine, the oldest first."""
    found = []
    for folder in our_folders():
        config = _config(folder)
        if config and config["host"] == socket.gethostname() and config["boot"] == boot_id():
            snapshot = _ask(folder)
            if snapshot and not snapshot["stopping"]:
                found.append(Found(folder, config, snapshot))
    yield from sorted(found, key=lambda pool: pool.config["record"]["created"])


def _config(folder: Path) -> dict[str, Any] | None:
    """Return what a pool's owner wrote; `None` for what is not ours, or just comes or goes."""
    try:
        config = read_config(folder)
    except (OSError, ValueError):
        return None
    return config if {"host", "boot"} <= config.keys() else None  # an older version's has none


def _ask(folder: Path) -> dict[str, Any] | None:
    """Return an agent's snapshot; `None` if nobody listens, or nothing is said in time."""
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(_ANSWER)
        try:
            agent.connect(str(folder / AGENT_SOCKET))
            check_unix_peer(agent)
            with agent.makefile("rb") as lines:
                line = lines.readline()
        except OSError:
            return None
    said: dict[str, Any] | None = json.loads(line) if line else None
    return said


def sweep() -> None:
    """Remove folders that were left behind when agent and owner were killed together.

    Nothing is signalled: what an earlier boot left names processes of others by now.
    """
    for folder in our_folders():
        config = _config(folder)
        if config and config.get("host") != socket.gethostname():
            continue  # on a shared disk, an agent of another machine may listen there
        if (config and config.get("boot") != boot_id()) or _is_deserted(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_deserted(folder: Path) -> bool:
    try:
        if time.time() - folder.lstat().st_mtime < _SWEEP_AFTER:
            return False
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(_ANSWER)
            agent.connect(str(folder / AGENT_SOCKET))
    except ConnectionRefusedError:  # there is a socket, and no agent listens
        return True
    except OSError:
        return False
    return False
