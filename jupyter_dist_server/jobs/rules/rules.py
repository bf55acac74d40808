"""What the machine's administrator allows whom, as plans ask for it."""

from __future__ import annotations

import grp
import os
import pwd
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from ...common.errors import DistError
from ...common.policy import Policy, read_policy
from ...common.users import name_of
from ..store.slurm_formats import write_moment
from .closures import Closure, closures

if TYPE_CHECKING:
    from ...gpus.inventory import Inventory


@dataclass(frozen=True)
class Rules:
    """Limits of users, and GPUs that are not for everybody now."""

    policy: Policy = field(default_factory=Policy)
    closed: Mapping[str, tuple[Closure, ...]] = field(default_factory=dict)
    """What closes GPUs now or later, by UUID."""

    def closure(
        self, uuid: str, user: str, now: float, limit: float | None = None
    ) -> Closure | None:
        """Return what keeps a user from having a GPU for `limit` seconds, `None` for ever."""
        found = self.closed.get(uuid, ())
        return next((one for one in found if one.keeps_out(user, now, limit)), None)

    def next_change(self, now: float) -> float | None:
        """Return when the next closure begins or ends."""
        every = {one for found in self.closed.values() for one in found}
        moments = [moment for one in every for moment in (one.start, one.end) if moment]
        return min((moment for moment in moments if moment > now), default=None)


class Closed(msgspec.Struct, frozen=True):
    """What is told of a GPU that is not for everybody, or will not be."""

    words: str
    """After "GPU 6 is"."""
    now: bool
    """Whether it keeps us out now, however short our work is."""


def closed_gpus(inventory: Inventory) -> dict[str, Closed]:
    """Return by UUID what is closed now or later."""
    now, user, rules = time.time(), name_of(os.getuid()), read_rules(inventory)
    return {
        uuid: Closed("; ".join(map(str, found)), rules.closure(uuid, user, now, 0.0) is not None)
        for uuid, found in rules.closed.items()
    }


def check_extension(uuids: Iterable[str], until: float | None) -> None:
    """Refuse to let GPUs be used until a moment, `None` for ever, if they are reserved by then."""
    now, user, rules = time.time(), name_of(os.getuid()), read_rules(None)
    limit = None if until is None else until - now
    for found in (one for uuid in uuids for one in rules.closed.get(uuid, ())):
        if found.start > now and found.keeps_out(user, now, limit):
            hint = f"It can run until {write_moment(found.start)} at most."
            raise DistError("too_large", f"One of its GPUs is {found}.", hint, "time")


def unknown_names(inventory: Inventory) -> list[str]:
    """Return the users, groups and GPUs in the policy that do not exist: a typo opens GPUs."""
    policy, _ = read_policy()
    users = set(policy.users).union(*(one.users for one in policy.allow))
    groups = set(policy.groups).union(*(one.groups for one in policy.allow))
    gpus = {str(name) for one in policy.allow for name in one.gpus}
    for gpu in inventory.gpus:
        gpus -= {gpu.uuid, gpu.label, str(gpu.index)}
    found = [f"user {name}" for name in sorted(users) if not _exists(pwd.getpwnam, name)]
    found += [f"group {name}" for name in sorted(groups) if not _exists(grp.getgrnam, name)]
    return found + [f"GPU {name}" for name in sorted(gpus)]


def _exists(find: Callable[[str], object], name: str) -> bool:
    try:
        find(name)
    except KeyError:
        return name.isdecimal()  # of a user of the host's, in a container
    return True


def read_rules(inventory: Inventory | None) -> Rules:
    """Read the policy, and what is drained and reserved."""
    policy, _ = read_policy()
    return Rules(policy, _by_uuid([*_allowed(policy, inventory), *closures()[0]]))


def _by_uuid(every: Iterable[Closure]) -> dict[str, tuple[Closure, ...]]:
    found: dict[str, tuple[Closure, ...]] = {}
    for one in every:
        for uuid in one.gpus:
            found[uuid] = (*found.get(uuid, ()), one)
    return found


def _allowed(policy: Policy, inventory: Inventory | None) -> Iterable[Closure]:
    for one in policy.allow:
        names = set(map(str, one.gpus))
        gpus = inventory.gpus if inventory else ()
        uuids = frozenset(gpu.uuid for gpu in gpus if names & {gpu.uuid, gpu.label, str(gpu.index)})
        yield Closure(uuids, users=one.users, groups=one.groups)
