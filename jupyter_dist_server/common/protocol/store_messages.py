"""Requests of ranks to the store of their pool's process group, and replies.

The operations are those of torch's ``Store``:
https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.Store
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

FRAME = 4
"""Bytes of a message's length, big-endian, which precedes it on a socket."""

Operation = Literal["set", "append", "get", "wait", "check", "add", "compare_set", "delete", "list"]


class StoreRequest(msgspec.Struct, frozen=True, array_like=True):
    """One operation."""

    do: Operation
    keys: list[str] = []
    values: list[bytes] = []
    """By key; for ``compare_set``, what is expected and what is desired."""
    number: int = 0
    seconds: float = 0.0
    """How long ``get`` and ``wait`` wait for keys."""


class StoreReply(msgspec.Struct, frozen=True, array_like=True):
    """Its result."""

    values: list[bytes] = []
    number: int = 0
    keys: list[str] = []
    failure: str = ""


_encoder = msgspec.msgpack.Encoder()
_Read = Callable[[bytes], StoreRequest]
read_request: _Read = msgspec.msgpack.Decoder(StoreRequest).decode
read_store_reply: Callable[[bytes], StoreReply] = msgspec.msgpack.Decoder(StoreReply).decode


def frame(message: StoreRequest | StoreReply) -> bytes:
    """Return a message as it is sent on a socket."""
    body = _encoder.encode(message)
    return len(body).to_bytes(FRAME, "big") + body
