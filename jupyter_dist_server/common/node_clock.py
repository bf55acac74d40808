"""How far a node's clock is ahead of the first node's: its agent says it, and its ranks read it."""

from __future__ import annotations

from pathlib import Path

_FILE = "clock"


def write_ahead(folder: Path, seconds: float) -> None:
    """Note how far the clock here is ahead, in the private folder of a pool on this node."""
    fresh = folder / f"{_FILE}.new"
    fresh.write_text(repr(seconds))
    fresh.rename(folder / _FILE)


def read_ahead(folder: Path) -> float:
    """Return how far the clock here is ahead; 0 on the first node, and until that is known."""
    try:
        return float((folder / _FILE).read_text())
    except (OSError, ValueError):
        return 0.0
