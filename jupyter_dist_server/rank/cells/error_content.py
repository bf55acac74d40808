"""The content of an error message, with a limit on its size."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LONGEST = 100_000
"""Characters that are told of an error's message, and of each part of its traceback."""


def error_content(kind: str, error: BaseException, traceback: Iterable[str]) -> dict[str, Any]:
    """Return ``{ename, evalue, traceback}``, as Jupyter's messages have it."""
    parts = [_bounded(part) for part in traceback]
    return {"ename": kind, "evalue": _bounded(str(error)), "traceback": parts}


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {len(text) - _LONGEST:,} more characters of this error are cut"
