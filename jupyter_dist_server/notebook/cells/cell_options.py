"""How a cell on ranks is run and shown."""

from __future__ import annotations

from dataclasses import dataclass

from ...client.pool_client import OUTPUT_LIMIT
from ...common.protocol.ranks.rank_messages import ProfileOptions
from ..output.results import TakesOutputs


@dataclass(frozen=True)
class Options:
    """How a cell is run and shown."""

    per_rank: bool = False
    """Show rank after rank, and merge nothing."""
    quiet: bool = False
    """Show nothing but errors."""
    timeout: float | None = None
    """Seconds after which the cell is stopped."""
    limit: int = OUTPUT_LIMIT
    """Characters that all ranks together may show; the rest goes to files."""
    results: TakesOutputs | None = None
    """Takes what the ranks show."""
    profile: ProfileOptions | None = None
    """How it is profiled; `None` is not at all."""
