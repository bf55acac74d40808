"""Only clients with the pool's keys may talk to the TCP sockets of a rank.

libzmq asks the gate about each key by ZAP, see https://rfc.zeromq.org/spec/27, and reports
connections that fail before that. Nothing is read from a peer that was refused.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass
from typing import Any

import zmq
from zmq.utils import z85
from zmq.utils.monitor import recv_monitor_message

from ...common.patience import patience
from ...common.protocol.node_addresses import CurveKeys, RankAddress

_ZAP = "inproc://zeromq.zap.01"
_NEWS = "inproc://news-of-the-gate"
"""Receives the addresses of new monitors; an empty one ends the thread."""
_FAILURES = (
    zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)


@dataclass(frozen=True)
class RemotePlace:
    """What a rank needs that serves clients on another node."""

    address: RankAddress
    keys: CurveKeys
    own: str
    """The prefix of its Unix sockets, for processes that it forks."""


class CurveGate(threading.Thread):
    """Guards the sockets of one ZMQ context; made before any of them is bound."""

    def __init__(
        self, context: zmq.Context[Any], keys: CurveKeys, log: logging.Logger | Any
    ) -> None:
        super().__init__(name="curve-gate", daemon=True)
        self.refused = 0
        """The number of refused connections."""
        self._keys = keys
        self._admitted = z85.decode(keys.client_public)
        self._log = log
        self._logged = -math.inf
        self._context = context
        self._zap: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._zap.linger = 0
        self._zap.bind(_ZAP)
        self._news: zmq.Socket[bytes] = context.socket(zmq.PULL)
        self._news.bind(_NEWS)
        self.start()

    def guard(self, socket: zmq.Socket[bytes]) -> None:
        """Protect a socket that is bound later."""
        socket.curve_secretkey = self._keys.rank_secret.encode()
        socket.curve_publickey = self._keys.rank_public.encode()
        socket.curve_server = True
        address = f"inproc://gate-of-{id(socket)}"
        socket.monitor(address, _FAILURES)
        self._tell(address)

    def close(self) -> None:
        """End the thread."""
        self._tell("")
        self.join(patience.busy_answer)

    def _tell(self, news: str) -> None:
        with self._context.socket(zmq.PUSH) as socket:
            socket.connect(_NEWS)
            socket.send_string(news)

    def run(self) -> None:
        """Answer libzmq, until the end."""
        poller = zmq.Poller()
        sockets = [self._zap, self._news]
        for socket in sockets:
            poller.register(socket, zmq.POLLIN)
        while True:
            for ready, _ in poller.poll():
                if ready is self._zap:
                    self._answer()
                elif ready is self._news:
                    if not (address := self._news.recv_string()):
                        for socket in sockets:
                            socket.close(0)
                        return
                    monitor = self._context.socket(zmq.PAIR)
                    monitor.connect(address)
                    sockets.append(monitor)
                    poller.register(monitor, zmq.POLLIN)
                else:
                    recv_monitor_message(ready)
                    self._note_refusal()

    def _answer(self) -> None:
        _, request, _, _, _, mechanism, *credentials = self._zap.recv_multipart()
        admitted = mechanism == b"CURVE" and credentials == [self._admitted]
        status = [b"200", b"OK"] if admitted else [b"400", b"this key is not the pool's"]
        self._zap.send_multipart([b"1.0", request, *status, b"", b""])

    def _note_refusal(self) -> None:
        self.refused += 1
        if time.monotonic() - self._logged > 10:  # a refused client tries again and again
            self._logged = time.monotonic()
            self._log.warning(
                "Refused a connection without the pool's keys (%d so far).", self.refused
            )
