"""The rank's iopub channel: only what somebody subscribed to, and text before what follows it."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import zmq
from ipykernel.iostream import IOPubThread
from jupyter_client.jsonutil import json_default
from zmq.eventloop.zmqstream import ZMQStream

from .outbox import Outbox

_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half a pair: it may be in a string, but UTF-8 has nothing for it."""


class PubThread(IOPubThread):  # type: ignore[misc]
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
        self._pipe = pipe
        self.sent = 0
        self._woken = False
        self._subscriptions: Counter[bytes] = Counter()
        super().__init__(socket, pipe=True, session=session)
        session.pack = partial(_pack, session.pack)
        self.outbox = Outbox(session, self)
        self.captured: list[Any] = []
        """Both streams, see `RankStream`."""

    def _setup_pipe_in(self) -> None:
        # Not on a TCP port, as ipykernel does: all users of the machine could write there.
        self._pipe_uuid = os.urandom(16)
        pipe = self.socket.context.socket(zmq.PULL)
        pipe.linger = 0
        pipe.bind(self._pipe)
        self._pipe_in = ZMQStream(pipe, self.io_loop)
        self._pipe_in.on_recv(self._handle_pipe_msg)

    def _setup_pipe_out(self) -> tuple[zmq.Context[Any], zmq.Socket[Any]]:
        context: zmq.Context[Any] = zmq.Context()  # a forked process cannot use its parent's
        pipe = context.socket(zmq.PUSH)
        pipe.linger = 3000
        pipe.connect(self._pipe)
        return context, pipe

    def _handle_subscription(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._subscriptions[frame[1:]] += 1 if frame[0] else -1
        super()._handle_subscription(frames)

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
        self._events.append(call)
        if not self._woken:
            self._woken = True
            self._event_pipe.send(b"")

    def _handle_event(self, frames: list[bytes]) -> None:
        self._woken = False  # before the events are counted: later ones wake the thread again
        super()._handle_event(frames)

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
