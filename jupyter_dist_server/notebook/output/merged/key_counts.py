"""How often each thing that ranks show is in a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Key = str | tuple[str, str]
"""What makes two things alike: a line of stdout is its own key, others have their kind in it."""


class KeyCounts:
    """How often each key is in a log; where all differ, as they mostly do, it is but a `set`."""

    def __init__(self) -> None:
        self._keys: set[Key] = set()
        self._more: Counter[Key] = Counter()
        """How often a key is there besides the first time."""

    def has_any(self, keys: Sequence[Key]) -> bool:
        """Tell whether one of the keys is there."""
        return not self._keys.isdisjoint(keys)

    def add(self, keys: list[Key]) -> None:
        """Add each of the keys once."""
        if self._keys.isdisjoint(keys) and len(fresh := set(keys)) == len(keys):
            self._keys |= fresh
            return
        for key in keys:
            if key in self._keys:
                self._more[key] += 1
            else:
                self._keys.add(key)

    def remove(self, keys: list[Key]) -> None:
        """Take each of the keys, which must be there, out once."""
        if not self._more:
            self._keys.difference_update(keys)
            return
        for key in keys:
            if left := self._more[key]:
                self._more[key] = left - 1
                if left == 1:
                    del self._more[key]
            else:
                self._keys.discard(key)
