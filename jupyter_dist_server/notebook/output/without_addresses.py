"""Texts of ranks that differ only in an address, a process ID or a port: they say the same."""

from __future__ import annotations

import re

_HINTS = ("0x", "pid", ".1:")
_PROCESS = r"\bpids?(?:\(s\))?\W{0,3}"
_HOST = r"(?:\d\.\d+\.\d+\.\d+|localhost|\]):"
_VARYING = re.compile(
    rf"(\b0x)[0-9a-f]+|({_PROCESS})\d+(?:, \d+)*|(\bport\W{{0,3}}|{_HOST})\d+",
    re.IGNORECASE,
)
_LONGEST = 500
_NUMBER = re.compile(r"\d+(?:\.\d+(?:e[+-]?\d+)?)?", re.ASCII)


def may_vary(text: str) -> bool:
    """Tell quickly whether a text may have a part that `alike` replaces."""
    return any(hint in text for hint in _HINTS)


def alike(text: str) -> str:
    """Return a text with ``0x…`` for an address, and ``…`` for a process ID or a port."""
    return _VARYING.sub(lambda found: f"{found[found.lastindex or 0]}…", text)


def shape_of(line: str, rank: int) -> str | None:
    """Return a short line without fractions and the rank's number; `None` if it has neither."""
    if len(line) > _LONGEST:
        return None
    own = str(rank)
    shape = _NUMBER.sub(lambda n: "#" if "." in n[0] or n[0] == own else n[0], line)
    return shape if shape != line else None
