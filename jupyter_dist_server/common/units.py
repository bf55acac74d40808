"""How sizes, durations and numbers of GPUs and ranks are written, everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .protocol.pool_record import RankRecord

_UNITS = ("KiB", "MiB", "GiB", "TiB")


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
