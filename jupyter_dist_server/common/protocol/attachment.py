"""The message with which a process attaches to a pool."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ..processes import ProcessRef

SERVER, KERNEL = "server", "kernel"
"""What a holder may be."""


@dataclass(frozen=True)
class Owner:
    """Who starts pools, adopts and holds them: this very process.

    Attributes
    ----------
    kind : str
        `SERVER` or `KERNEL`.
    grace : float
        Seconds for which its pools outlive it.
    """

    kind: str = KERNEL
    grace: float = 0.0


def describe(
    kind: str, kernel_id: str | None = None, name: str = "", mode: bool = False
) -> dict[str, Any]:
    """Return what this process says of itself to hold a pool; `mode`: all its cells go there."""
    process = ProcessRef.of(os.getpid())
    return {"as": kind, **vars(process), "kernel_id": kernel_id, "name": name, "mode": mode}
