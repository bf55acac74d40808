"""All tests here leave no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Check that what a test has started has ended."""
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before
