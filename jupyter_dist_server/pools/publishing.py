"""The rank's iopub channel: only what somebody subscribed to, and text before what follows it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ipykernel.iostream import IOPubThread

from .outbox import Outbox


class PubThread(IOPubThread):  # type: ignore[misc]
    """Sends a rank's outputs, in a thread of its own.

    Attributes
    ----------
    sent : int
        How many messages were sent.
    outbox : Outbox
        Text that was printed, and goes out before any other message.
    """

    def __init__(self, socket: Any, session: Any) -> None:
        self.sent = 0
        self._subscriptions: Counter[bytes] = Counter()
        # The pipe is for displays of forked workers; ipykernel forwards them.
        super().__init__(socket, pipe=True, session=session)
        self.outbox = Outbox(session, self)
        self.captured: list[Any] = []
        """Both streams, see `RankStream`."""

    def _handle_subscription(self, frames: list[bytes]) -> None:
        for frame in frames:
            self._subscriptions[frame[1:]] += 1 if frame[0] else -1
        super()._handle_subscription(frames)

    def wanted(self, topic: bytes) -> bool:
        """Whether somebody has subscribed to a topic; if not, nobody would get the message."""
        return any(n > 0 and topic.startswith(s) for s, n in list(self._subscriptions.items()))

    def send_multipart(self, *arguments: Any, **options: Any) -> None:
        """Send a message, after what was printed before it."""
        self.outbox.send()
        self.sent += 1
        super().send_multipart(*arguments, **options)
