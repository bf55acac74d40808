"""GPUs that are closed for a time: drained for all, or reserved for some users.

They are in ``closures.json``, beside the policy or in the lease folder. There it counts if it
belongs to root, or to the folder's owner.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import msgspec

from ...common.errors import DistError
from ...common.files.shared_folder import folder, new_file, read_file
from ...common.policy import policy_path
from ...common.users import groups_of
from ..store.slurm_formats import write_moment

_NAME = "closures.json"
_LONGEST = 1 << 20
_Text = Annotated[str, msgspec.Meta(max_length=200)]


class Closure(msgspec.Struct, frozen=True, omit_defaults=True):
    """GPUs that are closed from `start` until `end`, in seconds since the epoch.

    They are reserved if it has an id, drained if only `by` names who did it, and otherwise for some
    users alone, as the policy says.
    """

    gpus: frozenset[_Text]
    """Their UUIDs."""
    by: _Text = ""
    why: _Text = ""
    start: float = 0.0
    end: float | None = None
    id: _Text = ""
    """Of a reservation: ``r1``."""
    users: frozenset[_Text] = frozenset()
    groups: frozenset[_Text] = frozenset()

    def __str__(self) -> str:
        """Return words that follow "GPU 6 is"."""
        why = f": {_printable(self.why)}" if self.why else ""
        until = "" if self.end is None else f" until {write_moment(self.end)}"
        whom = f" for {self.whom}" if self.whom else ""
        if not self.id:
            return f"drained by {self.by}{until}{why}" if self.by else f"only{whom}"
        return f"reserved{whom} from {write_moment(self.start)}{until}{why}"

    @property
    def whom(self) -> str:
        """Who may use them nevertheless: ``ann, group staff``."""
        names = [*sorted(self.users), *(f"group {name}" for name in sorted(self.groups))]
        return _printable(", ".join(names))

    def keeps_out(self, user: str, now: float, limit: float | None) -> bool:
        """Tell whether a user cannot have its GPUs now for `limit` seconds, `None` for ever."""
        is_over = self.end is not None and self.end <= now
        if is_over or now + (math.inf if limit is None else limit) <= self.start:
            return False
        return user not in self.users and not (self.groups and self.groups & groups_of(user))


_DECODE = msgspec.json.Decoder(list[Closure]).decode


def closures() -> tuple[list[Closure], str]:
    """Return all that are not over, and a sentence on a file that is wrong, and closes nothing."""
    found: list[Closure] = []
    wrong = ""
    for place in dict.fromkeys([policy_path().parent, folder()]):
        try:
            found += _read(place)
        except (OSError, ValueError, RecursionError) as error:
            wrong = f"{place / _NAME} cannot be read, and so closes no GPU: {error}."
    return found, wrong


def _read(place: Path) -> list[Closure]:
    """Return those of a folder that are not over; in the lease folder, anybody may write a file."""
    where = folder()
    owners = {0, where.stat().st_uid} if place == where else None
    try:
        content = read_file(place / _NAME, _LONGEST, owners)
    except FileNotFoundError:
        return []
    now = time.time()
    return [one for one in _DECODE(content or b"[]") if one.end is None or one.end > now]


def change_closures(change: Callable[[list[Closure]], Iterable[Closure]]) -> None:
    """Let `change` replace what we have closed; refuse it to ordinary users."""
    where, place = folder(), policy_path().parent
    if os.geteuid() == 0 and not place.exists():
        place.mkdir(parents=True)
        place.chmod(0o755)  # whatever the umask says, all must read the rules
    if not os.access(place, os.W_OK):
        place = where
        if where.stat().st_uid != os.geteuid():
            raise DistError(
                "not_allowed",
                "Only root, or the owner of the lease folder, drains and reserves GPUs.",
                f"Use sudo, or ask the administrator. The lease folder is {where}.",
            )
    try:
        before = _read(place)
    except (OSError, ValueError, RecursionError):  # what is wrong has closed nothing
        before = []
    fresh, file = new_file(place, msgspec.json.encode(list(change(before))))
    with file:
        os.fsync(file.fileno())
    fresh.rename(place / _NAME)
    with contextlib.suppress(OSError):
        os.utime(where)  # wakes all that wait


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))
