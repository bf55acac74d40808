"""The numbers by which a front end names what the ranks' debuggers have.

Each rank numbers its threads, frames and variables from 1, as the kernel does. A front end sees
other numbers for those of the ranks.
"""

from __future__ import annotations

import itertools
from typing import Any

from ...common.protocol.jupyter_messages import Content

_FIRST = 1_000_000_000
"""No debugger comes to so many; the protocol allows numbers up to 2³¹."""
_THREAD = "threadId"
_NAMES = frozenset([_THREAD, "frameId", "srcFrameId", "variablesReference", "sourceReference"])
_LISTS = {"threads": _THREAD, "stackFrames": "frameId"}
"""Lists whose items have their number as `id`."""


class References:
    """Numbers of ranks' threads, frames and variables, in both directions."""

    def __init__(self) -> None:
        self._fresh = itertools.count(_FIRST)
        self._shown: dict[tuple[int, bool, int], int] = {}
        """By rank, whether it is a thread, and its number there."""
        self._owners: dict[int, tuple[int, bool, int]] = {}

    def shown(self, rank: int, body: Any, name: str = "") -> Any:
        """Return what a rank says with the numbers that a front end sees."""
        if isinstance(body, list):
            return [self.shown(rank, item, name) for item in body]
        if isinstance(body, dict):
            numbered = _LISTS.get(name)
            return {
                key: self.number(rank, numbered, value)
                if numbered and key == "id"
                else self.shown(rank, value, key)
                for key, value in body.items()
            }
        return self.number(rank, name, body) if name in _NAMES else body

    def number(self, rank: int, name: str, own: Any) -> Any:
        """Return the number that a front end sees for a rank's own; 0 stands for none."""
        if not own or not isinstance(own, int):
            return own
        key = rank, name == _THREAD, own
        if key not in self._shown:
            self._shown[key] = next(self._fresh)
            self._owners[self._shown[key]] = key
        return self._shown[key]

    def owner(self, arguments: Content) -> tuple[int, Content] | None:
        """Return whose numbers a request has, and its arguments with them; `None`: the kernel's."""
        ranks: list[int] = []
        own = self._owned(arguments, ranks)
        return (ranks[0], own) if ranks else None

    def _owned(self, arguments: Content, ranks: list[int]) -> Content:
        own = dict(arguments)
        for name, value in arguments.items():
            if name == "source" and isinstance(value, dict):
                own[name] = self._owned(value, ranks)
            elif name in _NAMES and value in self._owners:
                rank, _, own[name] = self._owners[value]
                ranks.append(rank)
        return own

    def forget(self, rank: int) -> None:
        """Forget the frames and variables of a rank that goes on; its threads stay."""
        for key in [key for key in self._shown if key[0] == rank and not key[1]]:
            del self._owners[self._shown.pop(key)]
