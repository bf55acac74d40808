"""CurveZMQ between the nodes of a pool: both sides have keys, and all is encrypted.

See https://rfc.zeromq.org/spec/26 and http://curvezmq.org.
"""

from __future__ import annotations

from typing import Any

import zmq

from .protocol.node_addresses import CurveKeys


def new_curve_keys() -> CurveKeys:
    """Return the keys of a new pool."""
    pairs = [key.decode() for _ in range(2) for key in zmq.curve_keypair()]
    return CurveKeys(*pairs)


def show_client_keys(socket: zmq.Socket[Any], keys: CurveKeys) -> None:
    """Make a socket connect only to the pool's ranks, as one of their clients."""
    socket.curve_serverkey = keys.rank_public.encode()
    socket.curve_publickey = keys.client_public.encode()
    socket.curve_secretkey = keys.client_secret.encode()
