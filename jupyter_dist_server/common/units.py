"""How sizes, durations and numbers of GPUs and ranks are written, everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .errors import DistError

if TYPE_CHECKING:
    from .protocol.pool_record import RankRecord

LONGEST = 10 * 365 * 86400.0
"""Seconds of a limit, or until a begin, at most: dates end somewhere."""
_UNITS = ("KiB", "MiB", "GiB", "TiB")
_WITH_UNIT = re.compile(r"(\d{1,9})([smhd])")
_LIMIT = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?")


def format_bytes(size: float) -> str:
    """Return a number of bytes as people read it, such as ``512 B``, ``1.5 MiB`` or ``80 GiB``."""
    if size < 1024:
        return f"{size:.0f} B"
    for unit in _UNITS:
        size /= 1024
        if size < 1023.95 or unit == _UNITS[-1]:
            break
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def format_gpus(count: int) -> str:
    """Return a number of GPUs in words: ``1 GPU``, ``2 GPUs``."""
    return f"{count} GPU{'s' * (count != 1)}"


def count_ranks(count: int) -> str:
    """Return a number of ranks in words: ``1 rank``, ``2 ranks``."""
    return f"{count} rank{'s' * (count != 1)}"


def format_percent(part: float) -> str:
    """Return a part, from 0 to 1, as ``25 %``."""
    return f"{part:.0%}".replace("%", " %")


def format_seconds(seconds: float) -> str:
    """Return a short duration: ``1.23 s``, or ``45.6 ms``."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def write_limit(seconds: float | None) -> str:
    """Write a duration as ``squeue`` does: ``1-02:03:04``, ``2:03:04``, ``3:04``."""
    if seconds is None:
        return "UNLIMITED"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def read_limit(text: str) -> float | None:
    """Return the seconds of a time limit; `None` for ``UNLIMITED`` and 0.

    The forms are Slurm's: ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``,
    ``days-hours``, ``days-hours:minutes``, ``days-hours:minutes:seconds``; beside them ``90s``,
    ``30m``, ``2h`` and ``1d``.
    """
    if text.upper() in ("UNLIMITED", "INFINITE"):
        return None
    total = 0
    if match := _WITH_UNIT.fullmatch(text.strip()):
        total = int(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
    elif match := _LIMIT.fullmatch(text.strip()):
        days, first, second, third = (int(match[i] or 0) for i in (1, 2, 3, 4))
        if match[1] is None and match[4] is None:  # minutes, and perhaps seconds
            total = first * 60 + second
        else:
            total = ((days * 24 + first) * 60 + second) * 60 + third
        if not any((days, first, second, third)):
            return None
    if 0 < total <= LONGEST:
        return float(total)
    raise DistError(
        "bad_time",
        f"“{text}” is not a time limit.",
        "Use minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS, at most 10 years; such as 90, "
        "1-12:00:00, or 30m.",
    )


def name_gpus(labels: Iterable[str]) -> str:
    """Return ``GPU 3``, or ``GPUs 0, 1``; each is named once."""
    named = list(dict.fromkeys(labels))
    return f"GPU{'s' * (len(named) > 1)} {', '.join(named)}"


def gpus_of(ranks: Iterable[RankRecord]) -> str:
    """Name the GPUs of ranks, such as ``n1: GPUs 0, 1; n2: GPU 0``; empty if they have none."""
    by_node: dict[str, list[str]] = {}
    for rank in ranks:
        labels = by_node.setdefault(rank.node, [])
        if rank.gpu:
            labels.append(rank.gpu.label)
    if len(by_node) == 1:
        return "".join(name_gpus(labels) for labels in by_node.values() if labels)
    return "; ".join(f"{node}: {name_gpus(labels)}" for node, labels in by_node.items() if labels)
