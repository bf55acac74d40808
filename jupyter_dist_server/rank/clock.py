"""Times that this rank tells others, by the clock of the pool's first node.

Nodes have clocks of their own, and verdicts compare what ranks say.
"""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from ..common.pool_folder import read_ahead
from ..common.protocol.ranks.evidence import Collective
from ..common.protocol.ranks.profile_messages import RankProfile

_folder: Path | None = None


def follow(folder: Path) -> None:
    """Have the agent of this node say in a private folder how wrong our clock is."""
    global _folder
    _folder = folder


def ahead() -> float:
    """Return the seconds by which our clock is ahead of the first node's."""
    return read_ahead(_folder) if _folder else 0.0


def shared(moment: float) -> float:
    """Return a moment of our clock by that of the first node."""
    return moment - ahead()


def now() -> float:
    """Return the time by the clock of the first node."""
    return shared(time.time())


def shared_collectives(collectives: list[Collective]) -> list[Collective]:
    """Return the same, with times by the clock of the first node."""
    if not (late := ahead()):
        return collectives
    return [msgspec.structs.replace(one, begun=one.begun - late) for one in collectives]


def shared_profile(profile: RankProfile) -> RankProfile:
    """Return the same, with times by the clock of the first node."""
    if not (late := ahead()):
        return profile
    return msgspec.structs.replace(
        profile,
        ahead=late,
        started=profile.started - late,
        begin=profile.begin - late,
        end=profile.end - late,
        collectives=[
            msgspec.structs.replace(one, begin=one.begin - late, end=one.end - late)
            for one in profile.collectives
        ],
        computing=[(begin - late, end - late) for begin, end in profile.computing],
        communicating=[(begin - late, end - late) for begin, end in profile.communicating],
    )
