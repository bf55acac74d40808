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


def may_vary(text: str) -> bool:
    """Tell quickly whether a text may have a part that `alike` replaces."""
    return any(hint in text for hint in _HINTS)


def alike(text: str) -> str:
    """Return a text with ``0x…`` for an address, and ``…`` for a process ID or a port."""
    return _VARYING.sub(lambda found: f"{found[found.lastindex or 0]}…", text)
