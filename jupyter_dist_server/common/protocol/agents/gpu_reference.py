"""A GPU, as the state of a rank names it."""

from __future__ import annotations

import msgspec


class GpuReference(msgspec.Struct, frozen=True):
    """A physical GPU."""

    index: int
    label: str
    uuid: str
    name: str
