"""What a server tells the kernels of its user, in a private file of Jupyter's runtime folder."""

from __future__ import annotations

import msgspec

from ..processes import ProcessRef
from .decoding import decode


class DiscoveryFile(msgspec.Struct, frozen=True):
    """Where a server is, and how it is addressed."""

    url: str
    """Local, with its base URL."""
    secret: str
    """Opens our routes."""
    certfile: str
    """The server's own certificate; empty without TLS."""
    process: ProcessRef


_decoder: msgspec.json.Decoder[DiscoveryFile] = msgspec.json.Decoder(DiscoveryFile)


def decode_discovery_file(content: bytes) -> DiscoveryFile:
    """Read a server's file.

    Raises
    ------
    ValueError
        If it is none.
    """
    return decode(_decoder, content)
