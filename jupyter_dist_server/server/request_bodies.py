"""Limits on the size and depth of JSON bodies."""

from __future__ import annotations

import json
from typing import Any

from tornado import web
from tornado.httputil import HTTPServerRequest

MAX_BODY = 1 << 20
"""Bytes of a request's body; to read more JSON than that would hold up everybody else."""
MAX_DEPTH = 32
"""Lists and objects within each other."""


def read_json(text: str | bytes) -> Any:
    """Return what JSON says.

    Raises
    ------
    ValueError
        If it is not JSON, or nested too deeply.
    """
    try:
        content = json.loads(text)
    except RecursionError:
        content = _DEEPER
    if _is_deeper(content, MAX_DEPTH):
        raise ValueError(f"it has more than {MAX_DEPTH} levels of nesting")
    return content


_DEEPER: Any = []
_DEEPER.append(_DEEPER)
"""Stands for what is so deep that it cannot even be read."""


def _is_deeper(content: Any, depth: int) -> bool:
    if isinstance(content, dict):
        content = list(content.values())
    if not isinstance(content, list):
        return False
    return depth == 0 or any(_is_deeper(part, depth - 1) for part in content)


class Body:
    """A request's body, taken in piece by piece; of one that is too long, nothing is kept.

    Parameters
    ----------
    request : HTTPServerRequest
        Of which only the header has come.

    Raises
    ------
    tornado.web.HTTPError
        413, if the header says that the body is too long.
    """

    def __init__(self, request: HTTPServerRequest) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        length = request.headers.get("Content-Length", "")
        if length.isdecimal() and float(length) > MAX_BODY:
            raise _too_long()

    def add(self, piece: bytes) -> None:
        """Take in the next piece."""
        self._size += len(piece)
        if self._size <= MAX_BODY:
            self._pieces.append(piece)

    def content(self) -> bytes:
        """Return the whole body, or raise 413."""
        if self._size > MAX_BODY:
            raise _too_long()
        return b"".join(self._pieces)


def _too_long() -> web.HTTPError:
    return web.HTTPError(413, f"A request body is limited to {MAX_BODY:,} bytes.")
