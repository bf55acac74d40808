"""Requests to park a rank and to resume it, and replies.

A parked rank holds nothing on its GPU: the driver has moved it to the host's memory.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .rank_messages import RankReply, RankRequest


class UnloadRequest(RankRequest, frozen=True):
    """Free what is not needed on the GPU; between cells."""

    kind = "dist_unload_request"
    channel = "shell"
    leave: bool = False
    """Whether to leave a process group on NCCL, which the driver cannot park."""


class UnloadReply(RankReply, frozen=True):
    """What there is to be moved; or why it cannot be, and then nothing is lost."""

    nbytes: int = 0
    """How much is in use on its GPU, also by other ranks."""
    wrapped: list[str] = msgspec.field(default_factory=list)
    """Variables whose modules have a group that was left."""
    failure: str = ""


Step = Literal["lock", "checkpoint", "restore", "unlock"]


class ParkRequest(RankRequest, frozen=True):
    """Take one step of the driver's checkpoint; a rank that uses no GPU has nothing to do.

    All ranks take a step before any takes the next one.
    """

    kind = "dist_park_request"
    step: Step


class ParkReply(RankReply, frozen=True):
    """How the step ended."""

    failure: str = ""
    """Why it failed; empty if it did not."""
    is_lost: bool = False
    """Whether what was on the GPU is lost."""
