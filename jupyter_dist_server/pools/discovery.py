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

from ..client.agent_link import connect_to_agent, look_at_agent
from ..common.patience import patience
from ..common.pool_folder import our_folders, read_config
from ..common.processes.process_ref import boot_id
from ..common.protocol.agents.agent_messages import Snapshot
from ..common.protocol.agents.attachment import KERNEL, SERVER, Attachment
from ..common.protocol.pool_file import OtherVersion, PoolFile

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Found:
    """One pool whose agent answers."""

    folder: Path
    config: PoolFile
    snapshot: Snapshot

    @property
    def id(self) -> str:
        """The pool's ID."""
        return self.config.id

    @property
    def kernels(self) -> list[Attachment]:
        """The kernels that are attached to it, each once."""
        kernels = [one for one in self.snapshot.attachments if one.kind == KERNEL]
        return list({kernel.pid: kernel for kernel in kernels}.values())

    @property
    def has_server(self) -> bool:
        """Whether a server is attached to it."""
        return any(one.kind == SERVER for one in self.snapshot.attachments)


def find_pools() -> Iterator[Found]:
    """Yield the running pools of this user on this machine, the oldest first."""
    folders = list(our_folders())
    if not folders:
        return
    with ThreadPoolExecutor(min(len(folders), 32)) as threads:  # a silent agent delays no other
        found = [pool for pool in threads.map(_look_into, folders) if pool]
    yield from sorted(found, key=lambda pool: pool.config.record.created)


def _look_into(folder: Path) -> Found | None:
    """Return the pool of a folder, if it runs here; no folder may hide others."""
    try:
        config = read_config(folder)
        if config.host != socket.gethostname() or config.boot != boot_id() or config.node:
            return None  # a pool on several nodes is found on its first one
        snapshot = look_at_agent(folder, patience.busy_answer)
    except TimeoutError:
        _LOG.warning("The agent of the pool in %s does not respond", folder)
        return None
    except OSError:  # it is not ours, or just comes or goes
        return None
    except ValueError as error:
        _LOG.warning("The pool in %s is left alone: %s", folder, error)
        return None
    return None if not snapshot or snapshot.stopping else Found(folder, config, snapshot)


def pools_of_other_versions() -> list[Path]:
    """Return the folders of pools that other versions of this package have started here."""
    found = []
    for folder in our_folders():
        try:
            read_config(folder)
        except OtherVersion:
            found.append(folder)
        except (OSError, ValueError):  # it is not ours, or just comes or goes
            continue
    return found


def sweep() -> None:
    """Remove folders that were left behind when agent and owner were killed together.

    No process is signalled: after a reboot, what the folder names may be processes of others.
    Folders of other versions of this package stay.
    """
    for folder in our_folders():
        try:
            config = read_config(folder)
        except OtherVersion:
            continue
        except (OSError, ValueError):
            left = _is_deserted(folder)
        else:
            if config.host != socket.gethostname():
                continue  # on a shared disk, an agent of another machine may listen there
            left = config.boot != boot_id() or _is_deserted(folder)
        if left:
            shutil.rmtree(folder, ignore_errors=True)


def _is_deserted(folder: Path) -> bool:
    try:
        if time.time() - folder.lstat().st_mtime < 60:
            return False  # an agent may be about to listen there
        if not any(folder.iterdir()):
            return True  # its owner was killed as soon as it had made it
        connect_to_agent(folder, patience.busy_answer).close()
    except ConnectionRefusedError:  # there is a socket, and no agent listens
        return True
    except OSError:
        return False
    return False
