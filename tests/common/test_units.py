"""Bytes and GPUs are written in one way."""

from __future__ import annotations

import pytest

from jupyter_dist_server.common.protocol.agents.agent_messages import GpuReference
from jupyter_dist_server.common.protocol.pool_record import RankRecord
from jupyter_dist_server.common.units import format_bytes, gpus_of


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (2**20 - 1, "1 MiB"),
        (3 << 29, "1.5 GiB"),
        (80 << 30, "80 GiB"),
        (5 << 50, "5120 TiB"),
    ],
)
def test_bytes_as_people_read_them(size: int, text: str) -> None:
    assert format_bytes(size) == text


def ranks(*places: tuple[str, int | None]) -> list[RankRecord]:
    """Return ranks by their node and GPU."""
    return [
        RankRecord(
            number,
            0,
            "cpu",
            None if gpu is None else GpuReference(gpu, str(gpu), f"GPU-{gpu}", "H100"),
            node=node,
        )
        for number, (node, gpu) in enumerate(places)
    ]


def test_gpus_are_named_once_and_with_their_node_if_there_are_several() -> None:
    assert gpus_of(ranks(("", None))) == ""
    assert gpus_of(ranks(("", 3))) == "GPU 3"
    assert gpus_of(ranks(("", 3), ("", 0), ("", 3))) == "GPUs 3, 0"
    both = ranks(("n1", 0), ("n1", 1), ("n2", 0), ("n2", None))
    assert gpus_of(both) == "n1: GPUs 0, 1; n2: GPU 0"
    assert gpus_of(ranks(("n1", None), ("n2", None))) == ""
