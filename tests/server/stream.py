"""Read the WebSocket that pushes what happens to pools and GPUs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tornado.httpclient import HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from ..waiting import PATIENCE
from .client import Client
from .openapi import validate_named

Frame = dict[str, Any]


async def connect(client: Client) -> WebSocketClientConnection:
    """Open the stream."""
    url = f"ws://127.0.0.1:{client.url.port}{client.base}jupyter-dist/stream"
    return await websocket_connect(HTTPRequest(url, headers=client.headers))


async def read(stream: WebSocketClientConnection) -> Frame:
    """Return the next frame, which must be as the description says.

    The time is left out, as it may be told at any moment.
    """
    frame = await read_any(stream)
    while frame["type"] == "time":
        frame = await read_any(stream)
    return frame


async def read_any(stream: WebSocketClientConnection) -> Frame:
    """Return the next frame, whatever it is."""
    message = await asyncio.wait_for(stream.read_message(), PATIENCE)
    assert message is not None, "the stream has ended"
    frame: Frame = json.loads(message)
    validate_named("StreamFrame", frame)
    return frame


async def read_until(stream: WebSocketClientConnection, condition: Any) -> list[Frame]:
    """Return the frames up to the one of which `condition` holds."""
    frames = [await read(stream)]
    while not condition(frames[-1]):
        frames.append(await read(stream))
    return frames
