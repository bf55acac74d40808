"""Where the time of a step went, on each rank and on average; and when, for a picture."""

from __future__ import annotations

from statistics import fmean

import msgspec

from ...common.protocol.ranks.profile_messages import Lanes, LaneSeconds, RankLanes, RankProfile
from ...common.time_intervals import coarse, length, union, without
from .lateness import Profiles, Waiting, waiting


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of one step of a rank; `step` is the sum of the others but `copies` and `hidden`."""

    step: float
    compute: float
    input: float
    communication: float
    """While nothing else is done, and all ranks are there."""
    waiting: float
    other: float
    """Python code between operations, copying between CPU and GPU, and what torch does not know."""
    copies: float
    """The part of that in which something was copied."""
    hidden: float
    """Communication while something else is done."""

    def part(self, seconds: float) -> float:
        """Return a part of the step, from 0 to 1."""
        return seconds / self.step if self.step > 0 else 0.0

    @property
    def overlap(self) -> float:
        """The part of the communication during which something else is done, from 0 to 1."""
        whole = self.hidden + self.communication
        return self.hidden / whole if whole > 0 else 0.0


def account(profile: RankProfile, waiting: float, skew: float) -> Account:
    """Return where the time of a rank's step went; it waited as long as `Waiting` says."""
    steps = max(1, profile.steps)
    whole = max(0.0, profile.end - profile.begin - skew)
    communication = max(0.0, profile.exposed - waiting - skew)
    known = profile.compute + profile.input + communication + waiting
    return Account(
        step=whole / steps,
        compute=profile.compute / steps,
        input=profile.input / steps,
        communication=communication / steps,
        waiting=waiting / steps,
        other=max(0.0, whole - known) / steps,
        copies=profile.copies / steps,
        hidden=max(0.0, profile.communication - profile.exposed) / steps,
    )


def accounts(profiles: Profiles, waiting: Waiting) -> dict[int, Account]:
    """Return the account of each rank."""
    return {
        rank: account(profile, waiting.seconds[rank], waiting.skew[rank])
        for rank, profile in sorted(profiles.items())
    }


def average(accounts: dict[int, Account]) -> Account:
    """Return the average of each part."""
    return Account(
        **{
            name: fmean(getattr(a, name) for a in accounts.values())
            for name in Account.__struct_fields__
        }
    )


_MOST = 200
"""Times in a lane, and in all lanes of all ranks together."""
_MOST_OF_ALL = 9000


def lanes(profiles: Profiles) -> list[RankLanes]:
    """Return the lanes of ranks that were measured."""
    most = min(_MOST, max(1, _MOST_OF_ALL // (3 * len(profiles)))) if profiles else _MOST
    waits = waiting(profiles).times
    told = []
    for rank, profile in sorted(profiles.items()):
        waited = union(waits[rank])
        own = Lanes(
            compute=coarse(profile.computing, most),
            communication=coarse(without(profile.communicating, waited), most),
            waiting=coarse(waited, most),
            seconds=LaneSeconds(
                compute=profile.compute,
                communication=max(0.0, profile.exposed - length(waited)),
                waiting=length(waited),
            ),
        )
        told.append(RankLanes(rank=rank, start=profile.begin, end=profile.end, lanes=own))
    return told
