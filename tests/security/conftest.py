"""All tests here need a second uid."""

from __future__ import annotations

import pytest

from .stranger import needs_a_stranger


@pytest.fixture(scope="session", autouse=True)
def second_uid() -> None:
    """Skip where there is none."""
    needs_a_stranger()
