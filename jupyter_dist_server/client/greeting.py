"""Knowing that a subscription is in force: ranks greet every new one (Jupyter's iopub_welcome)."""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count
from typing import Any

import zmq

_PATIENCE, _LONGEST = 0.1, 10.0
"""Seconds between two tries, at first and at last: a rank that is stopped may be so for hours."""


async def wait_for_greeting(greeted: asyncio.Event, socket: zmq.Socket[Any]) -> None:
    """Return when a rank has greeted a subscriber, so that nothing it publishes can be missed.

    ipykernel sends on the same socket past its event loop, which may then overlook a subscription
    until the next one comes. So we subscribe to something else, and again, until it looks.

    Parameters
    ----------
    greeted : asyncio.Event
        Set by the reader of `socket` when a greeting arrives.
    socket : zmq.asyncio.Socket
        A SUB socket.
    """
    for attempt in count():
        patience = min(_PATIENCE * 1.5**attempt, _LONGEST)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(greeted.wait(), patience)
        if greeted.is_set():  # perhaps as nobody wants to know any more, and the socket is closed
            return
        socket.subscribe(f"nudge-{attempt}")
