"""The content of an error message, with a limit on its size."""

from __future__ import annotations

from collections.abc import Iterable

from ...common.errors import message_of
from ...common.protocol.jupyter_messages import Content

_LONGEST = 100_000
"""Characters that are told of an error's message, and of each part of its traceback."""
_LONGEST_LINE = 200
"""The same where others wait for the rank that the error ended."""


def error_content(kind: str, error: BaseException, traceback: Iterable[str]) -> Content:
    """Return ``{ename, evalue, traceback}``, as Jupyter's messages have it."""
    parts = [_bounded(part) for part in traceback]
    return {"ename": kind, "evalue": _bounded(message_of(error)), "traceback": parts}


def in_one_line(reply: Content) -> str:
    """Return the error with which a cell ended; empty if it went well."""
    if reply["status"] == "ok":
        return ""
    what = f"{reply['ename']}: {reply['evalue']}" if reply["evalue"] else reply["ename"]
    return str(what).partition("\n")[0][:_LONGEST_LINE]


def _bounded(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {len(text) - _LONGEST:,} more characters of this error are cut"
