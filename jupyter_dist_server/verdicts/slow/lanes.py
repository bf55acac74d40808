"""What each rank did when, for a picture."""

from __future__ import annotations

from ...common.protocol.ranks.profile_messages import Lanes, LaneSeconds, RankLanes
from ...common.time_intervals import coarse, length, union, without
from .lateness import Profiles, waiting

_MOST = 200
"""Times in a lane, and in all lanes of all ranks together."""
_MOST_OF_ALL = 9000


def lanes(profiles: Profiles) -> list[RankLanes]:
    """Return the lanes of ranks.

    Parameters
    ----------
    profiles : dict
        By rank; all of them were measured.
    """
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
