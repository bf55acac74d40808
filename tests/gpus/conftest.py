"""All tests here leave no process behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..waiting import wait_for
from .sampling import child_processes


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Check that what a test has started has ended."""
    before = set(child_processes())
    yield
    wait_for(lambda: set(child_processes()) <= before, "the end of what the test has started")
