"""What the administrator allows: ``/etc/jupyter-dist/policy.toml``.

It is read again whenever it has changed. A file that is wrong limits nothing; `jdist doctor` says
what is wrong, and where.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from .errors import DistError
from .units import format_gpus, read_limit, write_limit
from .users import groups_of, name_of

PATH = "JUPYTER_DIST_POLICY"
"""Environment variable: another path of the file, where the machine has none."""
_OF_MACHINE = Path("/etc/jupyter-dist/policy.toml")
_LONGEST = 1 << 20

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Seconds(float):
    """A duration as Slurm writes it, ``2-00:00:00``, or such as ``2h``; infinite if UNLIMITED."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a user may have at once; `None` for no limit."""

    max_gpus: _Count | None = None
    """GPUs of all running jobs and pools."""
    max_jobs: _Count | None = None
    """Running jobs, and pools that have GPUs."""
    max_waiting: _Count | None = None
    max_time: Seconds | None = None


class GroupLimits(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each member of a group may have, and all of them together."""

    max_total_gpus: _Count | None = None
    max_total_jobs: _Count | None = None


class Allowed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """GPUs that only some users may use."""

    gpus: list[int | str]
    """Their numbers or UUIDs."""
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()


class Policy(Limits, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: limits for everybody, then those of users and groups."""

    default_time: Seconds | None = None
    idle_limit: Seconds | None = None
    """Of pools that are started without one."""
    max_idle_limit: Seconds | None = None
    park_after: Seconds | None = None
    """Of pools that are started without one."""
    max_park_after: Seconds | None = None
    idle_load: Annotated[float, msgspec.Meta(gt=0, le=100)] = 5
    """The load of a GPU in percent below which a pool without a running cell is idle."""
    unseen_memory: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """MiB that unlisted processes may use of a GPU that counts as free."""
    half_life: Seconds = Seconds(7 * 86400.0)
    """After how long past use counts half in the order of users; 0 if it does not count."""
    users: dict[str, Limits] = {}
    groups: dict[str, GroupLimits] = {}
    allow: list[Allowed] = []

    def limits_of(self, user: str) -> Limits:
        """Return a user's own limits, else the widest of the user's groups, else everybody's."""
        own, groups = self.users.get(user, Limits()), [one for _, one in self.groups_of(user)]
        found: dict[str, Any] = {}
        for name in Limits.__struct_fields__:
            of_groups = [value for one in groups if (value := getattr(one, name)) is not None]
            found[name] = getattr(own, name)
            if found[name] is None:
                found[name] = max(of_groups) if of_groups else getattr(self, name)
        return Limits(**found)

    def groups_of(self, user: str) -> Iterator[tuple[str, GroupLimits]]:
        """Yield the groups of a user that have limits."""
        names = groups_of(user) if self.groups else ()
        yield from ((name, self.groups[name]) for name in names if name in self.groups)


def policy_path() -> Path:
    """Return where the file is, or would be."""
    other = os.environ.get(PATH)
    return Path(other) if other and not _OF_MACHINE.exists() else _OF_MACHINE


def watched_folder() -> Path:
    """Return the folder that changes when the file does."""
    return next(folder for folder in policy_path().parents if folder.is_dir())


def read_policy() -> tuple[Policy, str]:
    """Return the policy, and a sentence on what is wrong with its file."""
    path = _OF_MACHINE
    try:
        path = policy_path()
        about = path.stat()
        return _read(path, about.st_mtime_ns, about.st_size, about.st_ino)
    except FileNotFoundError:
        return Policy(), ""
    except OSError as error:
        return Policy(), f"{path} cannot be read, and so limits nothing: {error.strerror}."


@lru_cache(maxsize=1)
def _read(path: Path, *_: int) -> tuple[Policy, str]:
    with path.open("rb") as file:
        text = file.read(_LONGEST)
    try:
        return msgspec.toml.decode(text, type=Policy, dec_hook=_decode), ""
    except (msgspec.DecodeError, ValueError) as error:
        return Policy(), f"{path} is wrong, and so limits nothing: {error}."


def _decode(type: type, value: object) -> object:
    if not isinstance(value, str):
        raise ValueError('Expected a duration such as "2-00:00:00" or "2h"')
    try:
        limit = read_limit(value)
    except DistError as error:
        raise ValueError(error.message.rstrip(".")) from None
    return type(math.inf if limit is None else limit)


def allowed_limit(limit: float | None, is_given: bool) -> float | None:
    """Return our time limit in seconds, `None` for none; refuse one that is too long."""
    policy, _ = read_policy()
    most = policy.limits_of(name_of(os.getuid())).max_time
    if not is_given:
        return _finite(min(policy.default_time or math.inf, most or math.inf))
    return _within(limit, most, "A time limit", "--time")


def allowed_idle_limit(limit: float | None) -> float | None:
    """Return a pool's idle limit in seconds, `None` for none; refuse one that is too long."""
    policy, _ = read_policy()
    if limit is None:
        return _finite(min(policy.idle_limit or math.inf, policy.max_idle_limit or math.inf))
    return _within(limit, policy.max_idle_limit, "An idle limit", "--idle-limit")


def allowed_park_after(after: float | None) -> float | None:
    """Return when an idle pool is parked, in seconds; refuse what is too long."""
    policy, _ = read_policy()
    if after is None:
        return _finite(min(policy.park_after or math.inf, policy.max_park_after or math.inf))
    return _within(after, policy.max_park_after, "Parking", "--park-after")


def check_gpus(count: int) -> None:
    """Refuse more GPUs than we may ever use at once."""
    user = name_of(os.getuid())
    most = read_policy()[0].limits_of(user).max_gpus
    if most is not None and count > most:
        message = f"User {user} may use {format_gpus(most)} at once on this machine, not {count}."
        raise DistError("too_large", message, field="gpus")


def check_waiting(waiting: int, more: int) -> None:
    """Refuse more jobs than we may have waiting."""
    user = name_of(os.getuid())
    most = read_policy()[0].limits_of(user).max_waiting
    if most is not None and waiting + more > most:
        message = f"User {user} may have {most} waiting jobs on this machine, has {waiting}, "
        message += f"and submits {more}."
        raise DistError("too_many_jobs", message, "Submit the rest once some have started.")


def _within(limit: float | None, most: float | None, what: str, option: str) -> float | None:
    if most is not None and (limit or math.inf) > most:
        asked, allowed = write_limit(limit), write_limit(most)
        message = f"{what} of {asked} was asked for; this machine allows {allowed} at most."
        raise DistError("too_large", message, f"Use {option} {allowed} or less.")
    return limit


def _finite(limit: float) -> float | None:
    return None if limit == math.inf else float(limit)
