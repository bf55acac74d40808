"""The files with the output beyond a cell's limits."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import BinaryIO

from jupyter_core.paths import jupyter_data_dir

_KEEP_FILES = 7 * 24 * 3600.0
"""Seconds for which a file stays."""


def open_output_file(name: str) -> tuple[BinaryIO | None, str]:
    """Open a file of ours for writing, and remove old ones; if that fails, say why."""
    folder = Path(jupyter_data_dir(), "dist-output")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another rank was quicker
                if old.stat().st_mtime < time.time() - _KEEP_FILES:
                    old.unlink()
        return open(folder / name, "wb"), ""
    except OSError as error:
        return None, f"the rest cannot be saved: {error}"
