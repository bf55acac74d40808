"""Reading a message that another process sent: it is one of those that we know, or an error."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], message: bytes) -> T:
    """Read a message.

    Raises
    ------
    ValueError
        If it is none of the decoder's.
    """
    try:
        return decoder.decode(message)
    except RecursionError:
        raise ValueError("too deeply nested") from None
