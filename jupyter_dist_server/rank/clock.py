"""Times that this rank reports, by the clock of the pool's first node.

Nodes have different clocks, and verdicts compare times of ranks.
"""

from __future__ import annotations

import time
from pathlib import Path

from msgspec.structs import replace

from ..common.pool_folder import read_ahead
from ..common.protocol.ranks.evidence import Collective
from ..common.protocol.ranks.profile_messages import RankProfile

_folder: Path | None = None


def follow(folder: Path) -> None:
    """Read from a private folder how wrong our clock is; the agent of this node writes it."""
    global _folder
    _folder = folder


def _ahead() -> float:
    """Return the seconds by which our clock is ahead of the first node's."""
    return read_ahead(_folder) if _folder else 0.0


def shared(moment: float) -> float:
    """Convert a time of our clock to the first node's."""
    return moment - _ahead()


def now() -> float:
    """Return the time by the clock of the first node."""
    return shared(time.time())


def shared_collectives(collectives: list[Collective]) -> list[Collective]:
    """Convert the times of collectives to the first node's clock."""
    if not (late := _ahead()):
        return collectives
    return [replace(one, begun=one.begun - late) for one in collectives]


def shared_profile(profile: RankProfile) -> RankProfile:
    """Convert the times of a profile to the first node's clock."""
    if not (late := _ahead()):
        return profile
    return replace(
        profile,
        ahead=late,
        started=profile.started - late,
        begin=profile.begin - late,
        end=profile.end - late,
        collectives=[
            replace(one, begin=one.begin - late, end=one.end - late) for one in profile.collectives
        ],
        computing=[(begin - late, end - late) for begin, end in profile.computing],
        communicating=[(begin - late, end - late) for begin, end in profile.communicating],
    )
