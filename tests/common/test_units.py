"""Bytes are written in one way."""

from __future__ import annotations

import pytest

from jupyter_dist_server.common.units import format_bytes


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
