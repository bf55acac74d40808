"""How many GPU hours each user has had, in a file per user that all can read.

It orders those who wait (see `jobs.schedule.wants.in_order`), and `jdist report` shows it. It is in
the lease folder; its user can keep others from reading it, and then counts as one who had most.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import logging
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..errors import DistError
from ..patience import patience
from ..policy import read_policy
from .shared_folder import READ, folder, is_free

_LOG = logging.getLogger(__name__)

_SUFFIX = ".use"
_LONGEST = 1 << 16
_DAYS = 90
"""Days that are kept."""


class Day(msgspec.Struct, array_like=True):
    """What a user had on a day, in GPU-seconds."""

    day: str
    """Such as ``2026-03-01``."""
    used: float = 0.0
    idle: float = 0.0
    """Without a load, or while no cell ran."""
    failed: float = 0.0
    """For jobs that failed, or reached their time limit."""


class PastUse(msgspec.Struct):
    """What a user had."""

    at: float = 0.0
    average: float = 0.0
    """GPUs that the user had on average until `at`, where older times count less."""
    days: list[Day] = []

    def average_at(self, now: float, half_life: float) -> float:
        """Return the average at a later time, if the user has had no GPU since."""
        return self.average * math.pow(0.5, max(0.0, now - self.at) / half_life)


def average_of(gpus: int, seconds: float, half_life: float) -> float:
    """Return what having GPUs until now, for so long, adds to the average."""
    return gpus * (1 - math.pow(0.5, max(0.0, seconds) / half_life))


def note_use(gpus: int, since: float, idle: float = 0.0, failed: bool = False) -> None:
    """Note that we have had GPUs since a time; `idle` is in GPU-seconds."""
    now = time.time()
    used = gpus * max(0.0, now - since)
    try:
        with _our_file() as file:
            past = _decode(file.read())
            half_life = read_policy()[0].half_life
            added = average_of(gpus, now - since, half_life)
            past.average, past.at = past.average_at(now, half_life) + added, now
            today = time.strftime("%F", time.localtime(now))
            if not past.days or past.days[-1].day != today:
                past.days.append(Day(today))
            day = past.days[-1]
            day.used, day.idle = day.used + used, day.idle + min(idle, used)
            day.failed += used if failed else 0.0
            past.days = past.days[-_DAYS:]
            file.truncate(os.pwrite(file.fileno(), msgspec.json.encode(past), 0))
    except (OSError, DistError) as error:
        _LOG.warning("The GPU hours of what has just ended are not noted: %s", error)


@contextlib.contextmanager
def _our_file() -> Iterator[io.FileIO]:
    path = folder() / f"{os.getuid()}{_SUFFIX}"
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
        os.fchmod(descriptor, 0o644)  # whatever the umask says; its user may change it later
    with io.FileIO(descriptor, "r+") as file:
        if os.fstat(descriptor).st_uid != os.getuid():
            raise PermissionError(0, "another user has made the file", str(path))
        until = time.monotonic() + patience.instant
        while not is_free(file, fcntl.LOCK_EX) and time.monotonic() < until:
            time.sleep(0.01)  # anybody may hold it for ever
        yield file


def past_use() -> dict[int, PastUse | None]:
    """Return what users had, by uid; `None` of one who keeps us from reading it."""
    found: dict[int, PastUse | None] = {}
    for path in folder().glob(f"*{_SUFFIX}"):
        with contextlib.suppress(OSError, ValueError):
            uid = int(path.stem)
            if path.lstat().st_uid == uid:
                found[uid] = _read(path)
    return found


def _read(path: Path) -> PastUse | None:
    try:
        with open(os.open(path, READ), "rb") as file:
            return _decode(file.read(_LONGEST))
    except PermissionError:
        return None


def _decode(content: bytes) -> PastUse:
    with contextlib.suppress(ValueError):
        return msgspec.json.decode(content, type=PastUse)
    return PastUse()
