"""A multiset of lines counts like `collections.Counter`."""

from __future__ import annotations

import random
from collections import Counter

from jupyter_dist_server.notebook.output.merged.match_lines import Key, KeyCounts


def test_it_counts_like_a_counter() -> None:
    rng = random.Random(1)
    for length in (1, 3, 30):
        known = KeyCounts()
        counts: Counter[Key] = Counter()
        for _ in range(500):
            keys: list[Key] = [str(rng.randrange(40)) for _ in range(rng.randrange(length + 1))]
            if rng.random() < 0.5:
                known.add(keys)
                counts.update(keys)
            else:
                there = [key for key, n in (counts & Counter(keys)).items() for _ in range(n)]
                known.remove(there)
                counts -= Counter(there)
            assert {key for key in map(str, range(40)) if known.has_any([key])} == set(counts)


def test_different_keys_go_in_and_out_together() -> None:
    known = KeyCounts()
    known.add(["a", "b"])
    known.add(["c"])
    assert known.has_any(["x", "c"]) and not known.has_any(["x"]) and not known.has_any([])
    known.remove(["a", "c"])
    assert not known.has_any(["a", "c"]) and known.has_any(["b"])
