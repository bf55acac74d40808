"""A lease that a process was given as open files: a pool's agent, or the runner of a job."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DistError
from ..protocol.leaseholder import decode_leaseholder
from .inotify import ATTRIB, DELETE_SELF, MOVE_SELF, Inotify
from .own_files import OwnFile, own_any
from .past_use import note_use
from .shared_folder import folder, guard, is_free, lock_file, new_file

_TRIES = 5
"""How often files are created again at once, while somebody goes on removing them."""


class InheritedLease:
    """The files of a lease, held until they are closed; they say that it is ours.

    The last of the `descriptors` of a `Lease` says who holds it. If files are removed, they are
    created again, so that others still see the lease.
    """

    def __init__(self, descriptors: list[int]) -> None:
        self._files = [own_any(descriptor) for descriptor in descriptors]
        self._said = decode_leaseholder(_read(self._files[-1]))
        since = self._said.since or time.time()
        self._since = dict.fromkeys(self._said.gpus, since)
        """Since when each GPU is leased; their files are in this order, behind the folder's."""
        self._idle, self._told = 0.0, time.time()
        """For how long a pool was idle, in seconds, until it last said whether it is."""
        self._events: Inotify | None = None
        self._paths: list[Path] = []
        if sys.platform == "linux":
            self._paths = [_path_of(file) for file in self._files]
            with contextlib.suppress(OSError):  # no instance left: then files stay removed
                self._events = Inotify()
            self.mend()  # what was removed before that
        self.tell(pid=os.getpid())

    def fileno(self) -> int | None:
        """Return what can be read once the files have changed, and `mend` should be called."""
        return self._events.fileno() if self._events else None

    def tell(self, **fields: Any) -> None:
        """Change what others can read about the holder."""
        if self._said.idle_since is not None:
            self._idle += time.time() - max(self._said.idle_since, self._told)
        self._told = time.time()
        self._said = msgspec.structs.replace(self._said, **fields)
        holder = self._files[-1].fileno()
        os.ftruncate(holder, os.pwrite(holder, self._said.encode(), 0))

    def note_use(self) -> None:
        """Note for how long a pool has had its GPUs, see `past_use`; after its end."""
        self.tell()
        for since, count in Counter(self._since.values()).items():
            note_use(count, since, count * self._idle)

    def absorb(self, other: InheritedLease) -> None:
        """Hold the GPUs of another lease of the same pool too; that one ends."""
        self._since |= other._since
        self.tell(gpus=tuple(self._since))  # first: nobody must find a GPU without a holder
        self._files[-1:-1], other._files[1:-1] = other._files[1:-1], []
        self._paths[-1:-1], other._paths[1:-1] = other._paths[1:-1], []
        self._watch()
        other.close()

    def keep_only(self, uuids: Collection[str]) -> None:
        """Release the other GPUs; for ranks too that go on, and have the same files open."""
        gone = [place for place, uuid in enumerate(self._since) if uuid not in uuids]
        for place in reversed(gone):
            uuid = [*self._since][place]
            note_use(1, self._since.pop(uuid), self._idle)
            self.tell(gpus=tuple(self._since))
            lock = self._files.pop(place + 1)
            fcntl.flock(lock.fileno(), fcntl.LOCK_UN)
            lock.close()
            del self._paths[place + 1 : place + 2]

    def mend(self) -> None:
        """Create files again that were removed."""
        if self._events:
            self._events.read()
        for _ in range(_TRIES):
            # Before we look: the removal of a file that is not watched yet is no event, nor is that
            # of the folder, which we hold open.
            self._watch()
            if not self._make_missing():
                return

    def _make_missing(self) -> bool:
        """Create missing files again; tell whether there were any."""
        missing = False
        for place, path in enumerate(self._paths):
            if not _is_there(path, self._files[place]):
                missing = True
                try:
                    fresh = self._make(path, is_holder=place == len(self._paths) - 1)
                except (DistError, OSError) as error:
                    _warn(f"The lease file {path} was removed: {error}")
                    continue
                self._files[place].close()
                self._files[place] = fresh
                _warn(f"The lease file {path} was removed, and made anew")
        return missing

    def _make(self, path: Path, is_holder: bool) -> OwnFile:
        if path == self._paths[0]:
            return guard(folder())
        mode = fcntl.LOCK_SH if self._said.shared else fcntl.LOCK_EX
        if not is_holder:
            file = lock_file(path)
            if not is_free(file, mode):
                file.close()
                raise FileExistsError(0, "another process has locked its successor")
            return file
        fresh, file = new_file(path.parent, self._said.encode())
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fresh.rename(path)
        return file

    def _watch(self) -> None:
        if self._events:
            for file in self._files:
                with contextlib.suppress(OSError):
                    path = f"/proc/self/fd/{file.fileno()}"
                    self._events.watch(path, ATTRIB | DELETE_SELF | MOVE_SELF)

    def release(self) -> None:
        """Release the lease, also for ranks that go on and have the same files open."""
        for file in self._files:
            fcntl.flock(file.fileno(), fcntl.LOCK_UN)
        self.close()

    def close(self) -> None:
        """Release the lease; the file with the holder comes last, when all is free."""
        *locks, holder = self._files
        for file in locks:
            file.close()
        # Others lock the files of GPUs, and find those again; the name of this one is ours alone.
        if self._paths and _is_there(self._paths[-1], holder):
            with contextlib.suppress(OSError):
                self._paths[-1].unlink()
        holder.close()
        if self._events:
            self._events.close()


def _warn(sentence: str) -> None:
    import logging  # not above: it is rare, and each runner would carry it

    logging.getLogger(__name__).warning(sentence)


def _read(file: OwnFile) -> bytes:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def _path_of(file: OwnFile) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{file.fileno()}").removesuffix(" (deleted)"))


def _is_there(path: Path, file: OwnFile) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), os.fstat(file.fileno()))
    return False
