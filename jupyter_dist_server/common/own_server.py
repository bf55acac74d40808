"""Calls a Jupyter server of this user on this machine, which it makes sure of."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import ssl
import urllib.request
from collections.abc import Callable
from http.client import HTTPConnection, HTTPSConnection
from typing import Any

from .peers import CAN_TELL, listener_uid, user_name
from .server_file import CHALLENGE, PROOF, DiscoveryFile, proof


def opener_of(server: DiscoveryFile) -> urllib.request.OpenerDirector:
    """Return what opens requests to a server: by no proxy, and only if it is this user's."""
    context = None
    if server.certfile:
        # The certificate comes from the server's own file, and need not name the loopback.
        context = ssl.create_default_context(cafile=server.certfile)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    own = [_OwnHandler(), _OwnSecureHandler(context)]
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), *own)


def challenge(url: str, secret: str) -> tuple[urllib.request.Request, Callable[[Any], bool]]:
    """Return a request, and what tells whether the response proves that the server knows it."""
    asked = secrets.token_hex(32)
    request = urllib.request.Request(f"{url}status", headers={CHALLENGE: asked}, method="OPTIONS")

    def is_proof(response: Any) -> bool:
        shown = str(response.headers.get(PROOF, ""))
        return hmac.compare_digest(shown.encode(), proof(secret, asked).encode())

    return request, is_proof


def _check_listener(sock: socket.socket) -> None:
    """Raise `PermissionError` if the server is not this user's on this machine."""
    if CAN_TELL and (uid := listener_uid(*sock.getpeername()[:2])) != os.getuid():
        who = "no process of this machine" if uid is None else user_name(uid)
        raise PermissionError(1, f"{who} listens on its port")


class _OwnConnection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        _check_listener(self.sock)


class _OwnSecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        _check_listener(self.sock)


class _OwnHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_OwnConnection, req)


class _OwnSecureHandler(urllib.request.HTTPSHandler):
    def __init__(self, own: ssl.SSLContext | None) -> None:
        super().__init__(context=own)
        self._own = own

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_OwnSecureConnection, req, context=self._own)
