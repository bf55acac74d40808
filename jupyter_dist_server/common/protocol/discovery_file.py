"""What a server tells the kernels of its user, in a private file of Jupyter's runtime folder."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..processes.process_ref import ProcessRef
from .decode_message import reader


class DiscoveryFile(msgspec.Struct, frozen=True):
    """Where a server is, and how it is addressed."""

    url: str
    """Local, with its base URL."""
    secret: str
    """Opens our routes."""
    certfile: str
    """The server's own certificate; empty without TLS."""
    process: ProcessRef


decode_discovery_file: Callable[[bytes], DiscoveryFile] = reader(DiscoveryFile)
"""Reads a server's file."""
