"""Calls a route of our REST API from another handler, as that handler's caller.

So each tool has the authorization, the checks and the messages of the route behind it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)

from ..base_handlers import DistHandler

_KEPT = ("Authorization", "Cookie", "X-XSRFToken", "Host", "Origin", "User-Agent")
"""Headers that say who calls."""


class RouteFailed(Exception):
    """What a route refused; the message and the hint are for the agent."""


class _Response(HTTPConnection):
    """Takes what a handler answers."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.status = 0
        self.body = bytearray()
        self.done = asyncio.Event()
        self.left: Callable[[], None] | None = None
        """To be called if the agent leaves."""

    def write_headers(
        self,
        start_line: RequestStartLine | ResponseStartLine,
        headers: HTTPHeaders,
        chunk: bytes | None = None,
    ) -> asyncio.Future[None]:
        assert isinstance(start_line, ResponseStartLine)
        self.status = start_line.code
        return self.write(chunk or b"")

    def write(self, chunk: bytes) -> asyncio.Future[None]:
        self.body += chunk
        written = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written

    def finish(self) -> None:
        self.done.set()

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        self.left = callback


async def call_route(
    caller: DistHandler, method: str, path: str, body: Any = None, **query: Any
) -> Any:
    """Return the JSON that a route below ``/jupyter-dist/`` answers; raise `RouteFailed`."""
    headers = HTTPHeaders()
    for name in _KEPT:
        if name in caller.request.headers:
            headers[name] = caller.request.headers[name]
    content = b"" if body is None else json.dumps(body).encode()
    headers["Content-Length"] = str(len(content))
    url = f"{caller.base_url}jupyter-dist/{path}"
    asked = {name: value for name, value in query.items() if value is not None}
    response = _Response(getattr(caller.request.connection, "context", None))
    application: HTTPServerConnectionDelegate = caller.application
    delegate = application.start_request(None, response)
    line = RequestStartLine(method, f"{url}?{urlencode(asked)}" if asked else url, "HTTP/1.1")
    prepared = delegate.headers_received(line, headers)
    if prepared is not None:  # of a handler that reads its body piece by piece
        await prepared
    if content:
        delegate.data_received(content)
    delegate.finish()
    gone = asyncio.create_task(caller.gone.wait())
    done = asyncio.create_task(response.done.wait())
    await asyncio.wait({gone, done}, return_when=asyncio.FIRST_COMPLETED)
    gone.cancel()
    if not done.done() and response.left:
        response.left()
    await done  # a handler that is told that its client has left ends what it has begun
    # Ten megabytes of output would hold up other requests.
    return await asyncio.to_thread(_read, response)


def _read(response: _Response) -> Any:
    try:
        answer = json.loads(response.body or b"{}")
    except ValueError:
        answer = {"message": f"The server answered with HTTP status {response.status}."}
    if response.status < 400:
        return answer
    told = answer if isinstance(answer, dict) else {}
    words = [str(told.get("message") or f"HTTP status {response.status}."), told.get("hint")]
    raise RouteFailed(" ".join(filter(None, words)))
