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
        self._woken = False
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

        It is woken through a socket that takes only so many messages, and would block for ever.
        """
        if not self.thread.is_alive():
            call()
            return
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            super().schedule(self._call)

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
