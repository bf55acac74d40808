"""The rank's iopub channel: only what somebody subscribed to, and text before what follows it."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from jupyter_client.jsonutil import json_default

from ..ipykernel_internals import BasePubThread
from .outbox import Outbox

_SOON = 0.02
"""Seconds."""
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a pair: it may be in a string, but UTF-8 has nothing for it."""


class PubThread(BasePubThread):
    """Sends a rank's outputs, in a thread of its own.

    Parameters
    ----------
    socket : zmq.Socket
        The iopub channel's.
    session : Session
        Of the rank.
    pipe : str
        Where messages of forked workers come in; ipykernel forwards them.

    Attributes
    ----------
    sent : int
        How many messages were sent.
    outbox : Outbox
        Text that was printed, and goes out before any other message.
    """

    def __init__(self, socket: Any, session: Any, pipe: str) -> None:
        self.sent = 0
        self._woken = self._ticking = False
        self._calls: deque[Callable[[], Any]] = deque()
        self._subscriptions: Counter[bytes] = Counter()
        super().__init__(socket, session, pipe)
        session.pack = partial(_pack, session.pack)
        self.outbox = Outbox(session, self)
        self.captured: list[Any] = []
        """Both streams, see `RankStream`."""

    def on_subscription(self, topic: bytes, more: bool) -> None:
        """Count those who have subscribed to a topic."""
        self._subscriptions[topic] += 1 if more else -1

    def wanted(self, topic: bytes) -> bool:
        """Whether somebody has subscribed to a topic; if not, nobody would get the message."""
        return any(n > 0 and topic.startswith(s) for s, n in list(self._subscriptions.items()))

    def schedule(self, call: Callable[[], Any]) -> None:
        """Call something in the thread; wake it once for all that waits.

        ipykernel wakes it through a socket, which takes longer, and only so many messages.
        """
        if not self.thread.is_alive():
            call()
            return
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            self.io_loop.add_callback(self._call)

    def send_soon(self, frames: list[bytes]) -> None:
        """Send a message that nobody waits for: at once, or a moment after the last one.

        To wake the thread for each would take longer than a small cell.
        """
        self._calls.append(partial(self.socket.send_multipart, frames))
        if not self._ticking:
            self._ticking = True
            self.schedule(partial(self.io_loop.call_later, _SOON, self._tick))

    def _tick(self) -> None:
        self._ticking = False  # first: who queues a message after the next line begins anew
        if self._calls:
            self._ticking = True
            self.io_loop.call_later(_SOON, self._tick)
            self._call()

    def _call(self) -> None:
        self._woken = False  # a call that comes from now on wakes the thread again
        for _ in range(len(self._calls)):
            self._calls.popleft()()

    def send_multipart(self, *arguments: Any, **options: Any) -> None:
        """Send a message after what was printed before it; a display only within its budget."""
        self.outbox.send()
        if self.outbox.admits(arguments[0]):
            self.sent += 1
            super().send_multipart(*arguments, **options)


def _pack(pack: Callable[[Any], bytes], message: Any) -> bytes:
    """Serialise a part of a message, also one with lone surrogates."""
    try:
        return pack(message)
    except UnicodeEncodeError:
        text = json.dumps(message, default=json_default, ensure_ascii=False)
        return _SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):x}", text).encode()
