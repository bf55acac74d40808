"""Naming GPUs in sentences; where a pool has several nodes, each GPU with its node."""

from __future__ import annotations

from collections.abc import Iterable

from .protocol.pool_record import RankRecord


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
