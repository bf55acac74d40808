"""Reads messages of other processes, which are of a known type, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec


def reader(kind: Any) -> Callable[[bytes], Any]:
    """Return a function that reads a message of a type, and raises `ValueError` for any other."""
    decoder = msgspec.json.Decoder(kind)

    def read(message: bytes) -> Any:
        try:
            return decoder.decode(message)
        except RecursionError:
            raise ValueError("too deeply nested") from None

    return read
