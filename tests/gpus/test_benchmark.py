"""The benchmark of sampling measures what it says, in the small."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.telemetry import measure, tables


def test_no_client_one_and_some() -> None:
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    nobody, one, some = measure(trials=1, seconds=4.0, crowd=4, interval=0.25)
    assert [found.clients for found in (nobody, one, some)] == [0, 1, 4]
    assert nobody.sampler_cpu == 0  # nobody samples
    assert nobody.sizes == []
    # The kernel counts in hundredths of a second, of which a sampler may use none.
    assert 0 <= one.sampler_cpu + some.sampler_cpu < 100
    assert 2 <= len(one.sizes) <= 40
    assert 2 * 4 <= len(some.sizes) <= 40 * 4
    assert all(100 < size < 600 for size in some.sizes)
    assert all(len(found.delays) > 10 for found in (nobody, one, some))
    text = tables([nobody, one, some])
    assert "| 0 clients | 1 client | 4 clients |" in text
    assert "≤ 600: met" in text
