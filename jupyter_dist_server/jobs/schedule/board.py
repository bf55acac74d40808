"""Boards: what waiting users show each other.

A board is a file in the folder that all users share; it counts while its process lives. The
dispatcher of a user's queue has one, with the first of its entries, and so has each waiting pool. A
board decides on the order alone, never on who has a GPU, so a false board delays at most.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Annotated

import msgspec

from ...common.files.shared_folder import folder, is_free, lock_file
from ...common.patience import patience
from ...common.users import name_of
from ..leases.held_file import HeldFile, read_held
from .wants import Want, copied

JOBS, POOL = "jobs", "pool"
_SUFFIX = ".board"
_LONGEST = 1 << 16
"""Bytes of a board; a longer one is cut at whole entries."""
_MOST_BOARDS = 64
_MOST = 256
"""Entries of one user that count for others."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**20)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
_Moment = Annotated[float, msgspec.Meta(ge=0, lt=2**32)]
_Word = Annotated[str, msgspec.Meta(max_length=200)]
_Uuids = Annotated[list[_Word], msgspec.Meta(max_length=1024)]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that is waited for; `count` times the same, one after the other."""

    id: _Word
    queued: _Moment
    gpus: _Count = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=2**20)] = 1
    only: _Uuids | None = None
    limit: Annotated[float, msgspec.Meta(gt=0, lt=2**32)] | None = None
    cpus: _Count = 0
    memory: _Bytes = 0
    share: _Bytes | None = None
    force: bool = False
    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 0
    head_since: _Moment | None = None
    name: _Word = ""


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """The file."""

    kind: _Word
    pid: int
    store: _Word = ""
    sees: _Uuids = []
    """UUIDs of the GPUs that its owner sees; in a container these are not all."""
    queue: list[Entry] = []


@dataclass(frozen=True)
class Posted:
    """A board as others read it."""

    file: str
    user: str
    uid: int
    changed: int
    """Nanoseconds since the epoch: its file's time."""
    content: Content
    may_be_head: bool = True
    """Whether it counts that it calls one of its entries the head."""

    @property
    def wants(self) -> Iterator[Want]:
        """Its entries, each by itself."""
        now = time.time()
        for entry in self.content.queue:
            only = entry.only if entry.only is not None else self.content.sees
            want = Want(
                self._id(entry),
                self.user,
                min(entry.queued, now),
                only=frozenset(only) if entry.gpus else None,
                head_since=self._head_since(entry),
                name=_printable(entry.name),
                **copied(entry),
            )
            for place in range(min(entry.count, _MOST)):
                yield replace(want, id=f"{want.id}+{place}") if place else want

    @property
    def head(self) -> str | None:
        """The entry that it calls the head, by the id of its `Want`."""
        heads = (one for one in self.content.queue if one.head_since is not None)
        return next((self._id(one) for one in heads), None)

    def _id(self, entry: Entry) -> str:
        return f"{self.file} {_printable(entry.id)}"

    def _head_since(self, entry: Entry) -> float:
        since = entry.head_since if self.may_be_head else None
        return float("inf") if since is None else since


def posted() -> list[Posted]:
    """Return all valid boards, in the order of their names."""
    found = []
    decode = msgspec.json.Decoder(Content).decode
    for name, about, content in read_held(folder(), _SUFFIX, decode, _LONGEST, _MOST_BOARDS):
        if content is not None and " " not in name:
            user = name_of(about.st_uid)
            found.append(Posted(name, user, about.st_uid, about.st_mtime_ns, content))
    return found


def wants_of(boards: Iterable[Posted]) -> Iterator[Want]:
    """Yield the entries of boards, of each user the first few hundred."""
    counted = Counter[int]()
    for board in boards:
        for want in board.wants:
            if counted[board.uid] >= _MOST:
                break
            counted[board.uid] += 1
            yield want


class Board:
    """Our own board, from the first entry until it is taken down, or this process ends."""

    def __init__(self, kind: str, store: str = "") -> None:
        self._kind = kind
        self._store = store
        self._said = b""
        self._file: HeldFile | None = None
        self.name = f"{kind}-{os.urandom(8).hex()}{_SUFFIX}"

    def show(self, wants: Sequence[Want], sees: Collection[str] = ()) -> None:
        """Show what is waited for, in its order; without entries, show nothing.

        `sees` has the UUIDs of the GPUs that there are, as far as we see.
        """
        if not wants:
            self.close()
            return
        said = self._encode(wants, sees)
        if self._file and os.fstat(self._file.file.fileno()).st_nlink == 0:
            self._file.file.close()  # somebody has wiped the folder
            self._file = None
        if self._file is None:
            self._file = HeldFile.create(folder() / self.name, said)
        elif said != self._said:
            self._file.write(said)
        self._said = said

    def beat(self) -> None:
        """Show others that we are at work, though nothing has changed."""
        if self._file:
            self._file.beat()

    def close(self) -> None:
        """Take it down."""
        if self._file:
            (folder() / self.name).unlink(missing_ok=True)
            self._file.file.close()
            self._file = None

    def _encode(self, wants: Sequence[Want], sees: Collection[str]) -> bytes:
        room = _LONGEST - 1024 - sum(len(uuid) + 3 for uuid in sees)
        queue = []
        for entry in _grouped(wants):
            room -= len(msgspec.json.encode(entry)) + 1
            if room < 0:
                break
            queue.append(entry)
        content = Content(self._kind, os.getpid(), self._store, sorted(sees), queue)
        return msgspec.json.encode(content)


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))


def _grouped(wants: Iterable[Want]) -> Iterator[Entry]:
    """Group entries that only their place tells apart."""
    same = attrgetter("shape", "priority", "queued", "head_since")
    for _, group in groupby(wants, key=same):
        first, *others = group
        yield Entry(
            first.id[:200],
            first.queued,
            count=1 + len(others),
            only=None if first.only is None else sorted(first.only),
            head_since=None if first.head_since == float("inf") else first.head_since,
            name=first.name[:200],
            **copied(first),
        )


@contextlib.contextmanager
def order_lock() -> Iterator[bool]:
    """Wait until no other process looks for GPUs and takes them; tell whether that is so.

    It only keeps them from wanting the same GPU at once. GPUs have their own locks, so a process
    that does not get this one in time goes on without it: any user may hold it for ever.
    """
    with lock_file(folder() / "order.lock") as file:
        until = time.monotonic() + patience.answer
        while not (got := is_free(file, fcntl.LOCK_EX)) and time.monotonic() < until:
            time.sleep(0.005)  # flock knows no limit
        yield got
