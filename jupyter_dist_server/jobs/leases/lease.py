"""GPU leases for the whole machine: held by a process, released when it ends.

Each GPU has a file that its leaseholder locks: exclusively, or shared with others who do so too. A
second file says who that is, for everybody to read; it counts while the same process holds it. See
`common.files.shared_folder` for what a lock is.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ...common.errors import DistError
from ...common.files.own_files import OwnFile
from ...common.files.shared_folder import folder, guard, is_free, lock_file, unusable
from ...common.protocol.leaseholder import Leaseholder, decode_leaseholder
from ...common.users import name_of
from .held_file import HeldFile, read_held

if TYPE_CHECKING:
    from ...gpus.inventory import Inventory

_HOLDER = ".holder"
_CORES = ".cores"
_TOLD = ["user", "pid", "since", "ends_by", "idle_since", "park_after", "shared"]
_TOLD += ["pool", "notebook", "host"]
"""What is told of a leaseholder."""
_LONGEST = 16384
"""Bytes that are read of what others write."""


class GpuTaken(Exception):
    """A GPU that somebody else leases; its UUID is the argument."""


class KnownLeaseholder(Leaseholder, frozen=True, kw_only=True):
    """A leaseholder; nothing but what is added here can be relied on."""

    user: str
    file: str


class GpuLease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who leases a GPU."""

    user: str | None
    """`None` if something else has locked it: ``flock`` in a shell, say."""
    pid: int | None = None
    since: float | None = None
    ends_by: float | None = None
    idle_since: float | None = None
    park_after: float | None = None
    pool: str | None = None
    notebook: str | None = None
    host: str | None = None
    shared: bool
    others: list[GpuLease]
    """Who shares it with the first."""
    obstacle: str | None = None
    """The path of a file of `user` in the place of the GPU's lock."""

    def parks(self, now: float) -> str:
        """Say when a pool gives its GPUs to those who wait; empty if it does not."""
        if self.park_after is None:
            return ""
        idle = 0.0 if self.idle_since is None else max(0.0, now - self.idle_since)
        minutes = max(1, math.ceil((self.park_after - idle) / 60))
        more = "" if self.idle_since is None else "more "
        return f"parks after {minutes} {more}idle minute{'s' * (minutes > 1)}"


class Lease:
    """The GPUs of one pool.

    Its files are the folder, the lock of each GPU, and last, the holder's: a process that sees that
    one closed finds the locks free.
    """

    def __init__(self, files: list[OwnFile]) -> None:
        self._files = files

    @classmethod
    def take(
        cls, uuids: Iterable[str], who: Leaseholder, shared: bool = False, name: str = ""
    ) -> Lease:
        """Lease GPUs, all or none; it reads what others lease, so it has no place in an event loop.

        `shared`: others may lease them too, if they share them. `name` is that of a pool's further
        lease. It raises `GpuTaken` if another
        process leases one of them, or looks at it this very moment.
        """
        where, mode = folder(), fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        with contextlib.ExitStack() as undo:
            folder_lock = guard(where)
            undo.callback(folder_lock.close)
            locks: list[io.FileIO] = []
            # In the same order for all: of those who want the same GPUs, one gets them.
            for uuid in sorted(set(uuids)):
                locks.append(undo.enter_context(_lock_of(where, uuid)))
                if not (is_free(locks[-1], mode) and _is_still_there(where, uuid, locks[-1])):
                    raise GpuTaken(uuid)
            who = msgspec.structs.replace(who, gpus=tuple(sorted(set(uuids))), shared=shared)
            path = where / f"{name or who.pool}{_HOLDER if who.gpus else _CORES}"
            holder = HeldFile.create(path, who.encode())
            undo.enter_context(holder.file)
            undo.callback(path.unlink, missing_ok=True)
            _check_others(where, path.name, who)
            undo.pop_all()
        return cls([folder_lock, *locks, holder.file])

    @property
    def descriptors(self) -> list[int]:
        """What another process needs to hold the lease, too."""
        return [file.fileno() for file in self._files]

    def close(self) -> None:
        """Leave the lease to those who have inherited it; it ends with the last of them."""
        for file in self._files:
            file.close()


def _lock_of(where: Path, uuid: str) -> io.FileIO:
    return lock_file(_path_of(where, uuid))


def _path_of(where: Path, uuid: str) -> Path:
    return where / f"{uuid.replace('/', '_')}.lease"


def _is_still_there(where: Path, uuid: str, lock: io.FileIO) -> bool:
    """Tell whether the file that we have locked is the one that others would lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(_path_of(where, uuid).lstat(), os.fstat(lock.fileno()))
    return False


def _check_others(where: Path, own: str, who: Leaseholder) -> None:
    """Refuse GPUs whose holder is there, though its lock is not.

    The user who made a GPU's file, as the first to lease it, can remove it while another user has
    it locked; what a holder says of itself is its own file, and stays.
    """
    for other in _known(where, _HOLDER):
        if other.file != own and not (who.shared and other.shared):
            for uuid in set(who.gpus) & set(other.gpus):
                raise GpuTaken(uuid)


def _known(where: Path, suffix: str) -> list[KnownLeaseholder]:
    return [
        KnownLeaseholder(
            **msgspec.structs.asdict(said or Leaseholder()), user=name_of(about.st_uid), file=name
        )
        for name, about, said in read_held(where, suffix, decode_leaseholder, _LONGEST)
    ]


def _obstacle(path: Path) -> GpuLease:
    """Name the owner of a file that keeps us from locking a GPU."""
    try:
        owner = name_of(path.lstat().st_uid)
    except OSError as error:  # nobody can make one
        raise unusable(path, error) from error
    return GpuLease(user=owner, obstacle=str(path), shared=False, others=[])


def running() -> list[KnownLeaseholder]:
    """Return what every lease says of itself, also of jobs without GPUs."""
    where = folder()
    return _known(where, _HOLDER) + _known(where, _CORES)


def holders(inventory: Inventory) -> dict[str, GpuLease]:
    """Tell by UUID who leases which GPUs."""
    if not inventory.gpus:
        return {}
    where = folder()
    leased: dict[str, GpuLease] = {}
    for who in sorted(_known(where, _HOLDER), key=lambda who: str(who.since)):
        for uuid in who.gpus:
            told = {name: getattr(who, name) for name in _TOLD}
            lease = GpuLease(**told, others=[])
            if (first := leased.setdefault(uuid, lease)) is not lease:
                first.others.append(lease)
    known = {gpu.uuid for gpu in inventory.gpus}
    for uuid in known - leased.keys():
        try:
            with _lock_of(where, uuid) as lock:
                if not is_free(lock, fcntl.LOCK_SH):
                    leased[uuid] = GpuLease(user=None, shared=False, others=[])
        except DistError:
            leased[uuid] = _obstacle(_path_of(where, uuid))
    return {uuid: lease for uuid, lease in leased.items() if uuid in known}
