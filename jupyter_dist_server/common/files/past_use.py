"""How many GPU hours each user has had, in a file per user that all can read.

It orders those who wait (see `jobs.schedule.order.in_order`), and `jdist report` shows it. It is in
the lease folder; its user can keep others from reading it, and then counts as one who had most.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from ..errors import DistError
from ..patience import patience
from ..policy import read_policy
from .shared_folder import folder, is_free, read_file

_SUFFIX = ".use"
_LONGEST = 1 << 16
_DAYS = 90
"""Days that are kept."""


_Seconds = Annotated[float, msgspec.Meta(ge=0, le=2**50)]


class Day(msgspec.Struct, array_like=True):
    """What a user had on a day, in GPU-seconds."""

    day: str
    """Such as ``2026-03-01``."""
    used: _Seconds = 0.0
    idle: _Seconds = 0.0
    """Without a load, or while no cell ran."""
    failed: _Seconds = 0.0
    """For jobs that failed, or reached their time limit."""


class PastUse(msgspec.Struct):
    """What a user had."""

    at: _Seconds = 0.0
    average: Annotated[float, msgspec.Meta(ge=0, le=2**20)] = 0.0
    """GPUs that the user had on average until `at`, where older times count less."""
    days: list[Day] = []

    def average_at(self, now: float, half_life: float) -> float:
        """Return the average at a later time, if the user has had no GPU since."""
        if half_life == math.inf:  # past use does not count
            return 0.0
        return self.average * math.pow(0.5, max(0.0, now - self.at) / half_life)


def average_of(gpus: int, seconds: float, half_life: float) -> float:
    """Return what having GPUs until now, for so long, adds to the average."""
    return gpus * (1 - math.pow(0.5, max(0.0, seconds) / half_life))


def note_use(gpus: int, since: float, idle: float = 0.0, failed: bool = False) -> None:
    """Note that we have had GPUs since a time; `idle` is in GPU-seconds."""
    now = time.time()
    try:
        with _our_file() as file:
            past = _decode(file.read())
            half_life = read_policy()[0].half_life
            added = average_of(gpus, now - since, half_life)
            past.average, past.at = past.average_at(now, half_life) + added, now
            by_day = {day.day: day for day in past.days}
            for name, seconds in _days(max(since, now - _DAYS * 86400), now):
                day = by_day.setdefault(name, Day(name))
                day.used += gpus * seconds
                day.idle += min(idle, gpus * (now - since)) * seconds / (now - since)
                day.failed += gpus * seconds * failed
            past.days = [by_day[name] for name in sorted(by_day)][-_DAYS:]
            file.truncate(os.pwrite(file.fileno(), msgspec.json.encode(past), 0))
    except (OSError, DistError) as error:
        import logging  # not above: each runner would carry it

        log = logging.getLogger(__name__)
        log.warning("The GPU hours of what has just ended are not noted: %s", error)


def _days(since: float, now: float) -> Iterator[tuple[str, float]]:
    """Split a time at midnights; yield each day and its seconds."""
    while since < now:
        then = time.localtime(since)
        midnight = time.mktime((then.tm_year, then.tm_mon, then.tm_mday + 1, 0, 0, 0, 0, 0, -1))
        end = min(now, midnight)
        yield time.strftime("%F", then), end - since
        since = end


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
    with os.scandir(folder()) as entries:
        for entry in entries:
            if entry.name.endswith(_SUFFIX):
                with contextlib.suppress(FileNotFoundError):
                    uid = entry.stat(follow_symlinks=False).st_uid
                    if entry.name == f"{uid}{_SUFFIX}":
                        found[uid] = _read(Path(entry), uid)
    return found


def _read(path: Path, uid: int) -> PastUse | None:
    try:
        return _decode(read_file(path, _LONGEST, {uid}) or b"")
    except PermissionError:
        return None
    except OSError:  # it is no file, or gone by now
        return PastUse()


def _decode(content: bytes) -> PastUse:
    with contextlib.suppress(ValueError, RecursionError):
        return msgspec.json.decode(content, type=PastUse)
    return PastUse()
