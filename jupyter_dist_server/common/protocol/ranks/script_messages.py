"""What a process of a script tells, when it is asked over its socket."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..decode_message import reader
from .evidence import RankEvidence
from .profile_messages import RankProfile


class Launch(msgspec.Struct, frozen=True):
    """Which ranks belong together, and which of them one is."""

    rank: int
    world_size: int
    address: str = ""
    """Where they meet: ``MASTER_ADDR:MASTER_PORT``."""
    is_local: bool = False
    """Whether all of them are known to be on this machine."""


class ScriptReply(msgspec.Struct, frozen=True):
    """What one process knows."""

    launch: Launch | None = None
    """`None` if it is no rank."""
    evidence: RankEvidence | None = None
    failure: str = ""
    """Why it cannot tell."""


class ScriptProfile(msgspec.Struct, frozen=True):
    """The profile of one rank, in a file."""

    rank: int
    profile: RankProfile
    trace: bytes
    """Compressed with gzip."""


decode_script_profile = msgspec.msgpack.Decoder(ScriptProfile).decode
decode_script_reply: Callable[[bytes], ScriptReply] = reader(ScriptReply)


def read_launch(environment: dict[str, str]) -> Launch | None:
    """Read torchrun's variables; `None` if they are not those of a rank."""
    try:
        rank, size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
        local_size = int(environment.get("LOCAL_WORLD_SIZE", -1))
    except (KeyError, ValueError):
        return None
    where = [environment.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT")]
    return Launch(rank, size, ":".join(where), local_size == size)
