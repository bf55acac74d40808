"""How a cell on ranks is run and shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...client.pool_client import OUTPUT_LIMIT
from ...common.protocol.jupyter_messages import Content
from ...common.protocol.ranks.rank_messages import ProfileOptions


@dataclass(frozen=True)
class Options:
    """How a cell is run and shown."""

    per_rank: bool = False
    """Show rank after rank, and merge nothing."""
    quiet: bool = False
    """Show nothing but errors."""
    tabs: bool = True
    """Whether JupyterLab may show a tab for each rank."""
    timeout: float | None = None
    """Seconds after which the cell is stopped."""
    limit: int = OUTPUT_LIMIT
    """Characters that all ranks together may show; the rest goes to files."""
    profile: ProfileOptions | None = None
    takers: tuple[Callable[[int, str, Content], None], ...] = ()
    """Called with each rank's outputs."""
