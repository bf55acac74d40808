"""Finding running pools by their private folders."""

from __future__ import annotations

import logging
import shutil
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..client.agent_link import Snapshot, look_at_agent
from ..common.folder import AGENT_SOCKET, our_folders, read_config
from ..common.processes import ProcessRef, boot_id
from ..common.protocol.records import PoolRecord

_LOG = logging.getLogger(__name__)

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
    def created(self) -> float:
        """When it was."""
        moment: float = self.config["record"]["created"]
        return moment

    def check(self) -> None:
        """Raise an error unless all is there that a pool of this version has."""
        PoolRecord.from_json(self.config["record"]).take(self.snapshot)
        ProcessRef(**self.snapshot["process"])
        if not (self.created >= 0 and self.config["held_by"] and self.config["timeout"] > 0):
            raise ValueError("no start")
        if None in (self.kernels, self.served):
            raise ValueError("no holders")

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
    folders = list(our_folders())
    if not folders:
        return
    with ThreadPoolExecutor(min(len(folders), 32)) as threads:  # a silent agent delays no other
        found = [pool for pool in threads.map(_look_into, folders) if pool]
    yield from sorted(found, key=lambda pool: pool.created)


def _look_into(folder: Path) -> Found | None:
    """Return the pool of a folder, if it runs here; what one folder holds must not hide others."""
    try:
        config = _config(folder)
        if not config or config["host"] != socket.gethostname() or config["boot"] != boot_id():
            return None
        snapshot = _ask(folder)
        if not snapshot or snapshot["stopping"]:
            return None
        pool = Found(folder, config, snapshot)
        pool.check()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        _LOG.warning("%s has another version, or is invalid: %r", folder, error)
        return None
    return pool


def _config(folder: Path) -> dict[str, Any] | None:
    """Return what a pool's owner wrote; `None` for what is not ours, or just comes or goes."""
    try:
        config = read_config(folder)
    except (OSError, ValueError):
        return None
    return config if {"host", "boot"} <= config.keys() else None  # an older version's has none


def _ask(folder: Path) -> Snapshot | None:
    """Return an agent's snapshot; `None` if nobody listens, or nothing is said in time."""
    try:
        return look_at_agent(folder, _ANSWER)
    except TimeoutError:
        _LOG.warning("The agent of the pool in %s does not respond", folder)
        return None
    except OSError:
        return None


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
