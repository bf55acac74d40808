"""All tests here need a second uid."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..network import own_network
from .stranger import needs_a_stranger


@pytest.fixture(scope="module", autouse=True)
def second_uid() -> Iterator[None]:
    """Skip where there is none; keep it from the ports of tests that run beside these."""
    needs_a_stranger()
    with own_network():
        yield
