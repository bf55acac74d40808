"""Alternatives to a start on GPUs that are taken, and places in line."""

from __future__ import annotations

from typing import Literal

import msgspec


class InLine(msgspec.Struct, frozen=True):
    """The place, from 1, of a pool or a job among all that wait on this machine."""

    place: int
    expected: float | None = None
    certain: bool = False
    """Whether it starts then at the latest: all that it waits for have limits."""


class Offer(msgspec.Struct, frozen=True, omit_defaults=True):
    """Another request, which would not be refused now."""

    kind: Literal["wait", "free", "share", "job"]
    """Wait in line, take other GPUs, share those of others, or run the notebook as a job."""
    line: InLine | None = None
    gpu_ids: list[int | str] = []
    """The GPUs that are free, no more than are needed."""
    gpus: int = 0
    """How many GPUs the job needs."""
