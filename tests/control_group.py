"""A control group that a test makes, and removes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .waiting import wait_for


@contextmanager
def control_group(parent: Path) -> Iterator[Path]:
    """Yield a new control group; skip the test where none can be made."""
    group = parent / f"jupyter-dist-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made in {parent}: {error}")
    yield group

    def is_removed() -> bool:
        with suppress(OSError):  # busy, as its last process is just ending
            group.rmdir()
        return not group.exists()

    wait_for(is_removed, "the removal of the control group")
