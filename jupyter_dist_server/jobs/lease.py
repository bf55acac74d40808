"""GPU leases for the whole machine: held by a process, released when it ends.

For each GPU there is a file that is locked by whoever leases it: exclusively, or shared with others
who do so too. A second file says who that is, for everybody to read; it counts while the same
process holds it. See `common.files.shared_folder` for what a lock is.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from ..common.errors import DistError
from ..common.files.own_files import OwnFile
from ..common.files.shared_folder import folder, guard, is_free, lock_file, unusable
from ..gpus.inventory import Inventory
from .held_file import HeldFile, held_files, name_of

_HOLDER = ".holder"
_CORES = ".cores"
"""Of a job that has no GPUs."""
_TOLD = ("user", "pid", "since", "pool", "notebook", "host", "shared")


class GpuTaken(Exception):
    """A GPU that somebody else leases; its UUID is the argument."""


class Lease:
    """The GPUs of one pool.

    Parameters
    ----------
    files : list of OwnFile
        The folder, the lock of each GPU, and, as the last one to be closed, what says who holds it:
        whoever sees that closed finds the locks free.
    """

    def __init__(self, files: list[OwnFile]) -> None:
        self._files = files

    @classmethod
    def take(cls, uuids: Iterable[str], who: dict[str, Any], shared: bool = False) -> Lease:
        """Lease GPUs, all or none; reads what others lease, so it has no place in an event loop.

        Parameters
        ----------
        uuids : iterable of str
            Of the GPUs.
        who : dict
            What others are told: ``pool``, which no other lease has, ``pid``, ``since``,
            ``notebook``, ``host``.
        shared : bool
            Whether others may lease the GPUs too, if they share them.

        Raises
        ------
        GpuTaken
            If one of them is leased by somebody else, or looked at this very moment.
        DistError
            If this user cannot lease anything here.
        """
        where, mode = folder(), fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        with contextlib.ExitStack() as undo:
            folder_lock = guard()
            undo.callback(folder_lock.close)
            locks: list[io.FileIO] = []
            # In the same order for all: of those who want the same GPUs, one gets them.
            for uuid in sorted(set(uuids)):
                locks.append(undo.enter_context(_lock_of(where, uuid)))
                if not (is_free(locks[-1], mode) and _is_still_there(where, uuid, locks[-1])):
                    raise GpuTaken(uuid)
            content = who | {"gpus": sorted(set(uuids)), "shared": shared}
            path = where / f"{who['pool']}{_HOLDER if content['gpus'] else _CORES}"
            holder = HeldFile.create(path, content)
            undo.enter_context(holder.file)
            undo.callback(path.unlink, missing_ok=True)
            _check_others(where, path.name, content)
            undo.pop_all()
        return cls([folder_lock, *locks, holder.file])

    @property
    def descriptors(self) -> list[int]:
        """What another process has to be given to hold the lease, too."""
        return [file.fileno() for file in self._files]

    def close(self) -> None:
        """Leave the lease to those who have inherited it; it ends with the last of them."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _lock_of(where: Path, uuid: str) -> io.FileIO:
    return lock_file(_path_of(where, uuid))


def _path_of(where: Path, uuid: str) -> Path:
    return where / f"{uuid.replace('/', '_')}.lease"


def _is_still_there(where: Path, uuid: str, lock: io.FileIO) -> bool:
    """Tell whether the file that we have locked is the one that others would lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(_path_of(where, uuid).lstat(), os.fstat(lock.fileno()))
    return False


def _check_others(where: Path, own: str, content: dict[str, Any]) -> None:
    """Refuse GPUs whose holder is there, though its lock is not.

    Whoever made a GPU's file, as the first to lease it, can remove it while another one has it
    locked; what a holder says of itself is that one's own file, and stays.

    Raises
    ------
    GpuTaken
        If there are such.
    """
    for other in held_files(where, _HOLDER):
        both_share = content["shared"] and other.get("shared") is True
        if other["file"] != own and not both_share:
            for uuid in set(content["gpus"]) & set(other["gpus"]):
                raise GpuTaken(uuid)


def _obstacle(path: Path) -> dict[str, Any]:
    """Return what is told of a GPU whose file cannot be locked: who has put it there."""
    try:
        owner = name_of(path.lstat().st_uid)
    except OSError as error:  # nobody can make one
        raise unusable(path, error) from error
    return {"user": owner, "obstacle": str(path), "shared": False, "others": []}


def running() -> list[dict[str, Any]]:
    """Return what every lease says of itself, those of jobs without GPUs, too.

    Returns
    -------
    list of dict
        What was given to `Lease.take`, with ``user``, ``file`` and ``gpus``. Its other users write
        it, so nothing but `user` and `file` can be relied on.
    """
    where = folder()
    return held_files(where, _HOLDER) + held_files(where, _CORES)


def holders(inventory: Inventory) -> dict[str, dict[str, Any]]:
    """Tell who leases which GPUs.

    Returns
    -------
    dict
        By UUID, for those that are leased: ``{user, pid, since, pool, notebook, host, shared,
        others}``; who share it with the first are `others`. Of a GPU that something else has locked
        (``flock`` in a shell, say) only `user` and `shared` are there, and `user` is `None`. Of one
        whose file is none that can be locked, there are `user`, who owns that, and `obstacle`, its
        path.

    Raises
    ------
    DistError
        If this user cannot lease anything here.
    """
    if not inventory.gpus:
        return {}
    where = folder()
    leased: dict[str, dict[str, Any]] = {}
    for content in sorted(held_files(where, _HOLDER), key=lambda said: str(said.get("since"))):
        who = {name: content.get(name) for name in _TOLD} | {"others": []}
        for uuid in content["gpus"]:
            if uuid in leased:
                leased[uuid]["others"].append(who)
            else:
                leased[uuid] = who | {"others": []}
    known = {gpu.uuid for gpu in inventory.gpus}
    for uuid in known - leased.keys():
        try:
            with _lock_of(where, uuid) as lock:
                if not is_free(lock, fcntl.LOCK_SH):
                    leased[uuid] = {"user": None, "shared": False, "others": []}
        except DistError:
            leased[uuid] = _obstacle(_path_of(where, uuid))
    return {uuid: who for uuid, who in leased.items() if uuid in known}
