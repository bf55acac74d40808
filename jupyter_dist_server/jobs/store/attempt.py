"""What the store keeps of each attempt of a job, and of each change of its state."""

from __future__ import annotations

import msgspec


class GpuPoint(msgspec.Struct, array_like=True):
    """Some readings of one GPU in a row."""

    at: int
    """Unix seconds of the first."""
    load: float | None
    """Their mean, in percent; `None` if unknown."""
    memory: int
    """The highest, in bytes; 0 if unknown."""


class GpuUsage(msgspec.Struct):
    """What was read of one GPU while a job had it."""

    memory_first: int
    memory_peak: int = 0
    """Bytes; 0 if unknown, as of a GPU that uses the host's memory."""
    samples: int = 0
    load_sum: int = 0
    """Of all readings, in percent."""
    load_peak: int | None = None
    """In percent; `None` if unknown, as of a MIG instance."""
    idle_since: float | None = None
    """`None` if it is busy, or nobody knows."""
    curve: list[GpuPoint] = []
    """The attempt in so few points that they are cheap to keep."""
    per_point: int = 1
    """Readings of a point."""
    elsewhere: list[str] = []
    """What other GPUs people call that the job used meanwhile; the same for all its GPUs."""

    @property
    def idle_share(self) -> float:
        """The part of the time, from 0 to 1, in which it had no load; 0 if nobody knows."""
        idle = sum(point.load is not None and point.load < 1 for point in self.curve)
        return idle / len(self.curve) if self.curve else 0.0


class Attempt(msgspec.Struct):
    """One run of a job."""

    job: int
    attempt: int
    """Its number, from 1."""
    state: str | None
    """`None` while it runs."""
    reason: str | None
    started: float | None
    ended: float | None
    exit_code: int | None
    exit_signal: int | None
    gpus: int | None
    usage: dict[str, GpuUsage]


class Event(msgspec.Struct):
    """A change of state."""

    seq: int
    """Grows with each event of the store."""
    job: int
    at: float
    was: str | None
    """The state before; `None` at the submission."""
    state: str
    reason: str
    name: str
    label: str
