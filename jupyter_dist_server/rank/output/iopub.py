"""The rank's iopub channel: output in order, without delay, limited, and only for subscribers."""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jupyter_client.jsonutil import json_default
from jupyter_client.session import DELIM

from ...common.protocol.jupyter_messages import Content
from ..ipykernel_internals import BasePubThread
from .budget import Budget

SOON = 0.002
"""Seconds that the first text after a pause waits, so that a line and its end go together."""
STEADY = 0.03
"""Seconds between two messages while a rank prints without a pause."""
_DISPLAYED = (b"display_data", b".execute_result")  # topics of displays, and of ``clear_output``
_MESSAGE = 1 << 16  # characters at which a message is sent at once
_LATE = 100  # the number of ended cells for whose threads the output limit is remembered
_TICK = 0.02
_SURROGATE = re.compile("[\ud800-\udfff]")  # half a pair: a string may have it, but not UTF-8


class Outbox:
    """Text of both streams of a rank, in the order in which it was printed."""

    def __init__(self, session: Any, pub_thread: Any) -> None:
        self.lock = threading.RLock()
        self._session = session
        self._pub_thread = pub_thread
        self._runs: list[tuple[Content, str, list[str]]] = []
        """Header of the cell, stream, and pieces of text."""
        self._size = 0
        self._scheduled = False
        self._sent_at = 0.0
        self._budgets: dict[str, Budget] = {}
        self._late: OrderedDict[str, Budget] = OrderedDict()
        """The budgets of ended cells; those that printed last are at the end."""

    def begin(self, cell: str, budget: Budget) -> None:
        """Limit what a cell, named by its message's ID, may show."""
        self._budgets[cell] = budget

    def end(self, cell: str, parent: Content) -> None:
        """Send what a cell has printed, and the end of a cut output."""
        with self.lock:  # threads of the cell may print meanwhile, and not to a closed file
            self.send()
            budget = self._budgets.pop(cell)
            if last := budget.close():
                self._publish(parent, "stdout", last)
            self._late[cell] = budget.for_late_output()
            if len(self._late) > _LATE:
                self._late.popitem(last=False)

    def put(self, parent: Content, stream: str, text: str) -> None:
        """Take text, with the lock held; it is sent soon."""
        if self._runs and (last := self._runs[-1])[0] is parent and last[1] == stream:
            last[2].append(text)
        else:
            self._runs.append((parent, stream, [text]))
        self._size += len(text)
        if self._size > _MESSAGE and (text.endswith("\n") or self._size > 2 * _MESSAGE):
            self.send()  # with whole lines, if possible: `print` writes a line's end by itself
        elif not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        delay = SOON if time.monotonic() - self._sent_at > 0.1 else STEADY
        loop = self._pub_thread.io_loop
        self._pub_thread.schedule(lambda: loop.call_later(delay, self.send))

    def flush(self) -> None:
        """Send now, unless a message was sent just before; then the next one includes it."""
        if time.monotonic() - self._sent_at > SOON:
            self.send()

    def send(self) -> None:
        """Send everything, before any later message."""
        with self.lock:
            runs, self._runs, self._size, self._scheduled = self._runs, [], 0, False
            if runs:
                self._sent_at = time.monotonic()
            for parent, stream, pieces in runs:
                text = "".join(pieces)
                if budget := self._budget_of(parent.get("msg_id", "")):
                    text = budget.spend(text)
                if text:
                    self._publish(parent, stream, text)

    def admits(self, frames: Sequence[bytes]) -> bool:
        """Tell whether to send a message: any but a display over its cell's budget."""
        if not frames[0].endswith(_DISPLAYED):
            return True
        header, parent, content = (bytes(frames[frames.index(DELIM) + n]) for n in (2, 3, 5))
        with self.lock:
            cell = json.loads(parent)
            budget = self._budget_of(cell.get("msg_id", ""))
            if budget is None:
                return True
            kind = json.loads(header)["msg_type"]
            if kind == "clear_output":
                budget.displays.clear()
                return True
            if kind == "execute_result" and (text := _only_text(content)):
                shown = budget.spend(text)
                if shown and shown != text:
                    self._publish(cell, "stdout", shown)
                return shown == text
            admitted = budget.displays.admits(content)
            if not admitted and (said := budget.displays.begins_to_cut):
                self._publish(cell, "stdout", said)
            return admitted

    def _budget_of(self, cell: str) -> Budget | None:
        if cell in self._late:
            self._late.move_to_end(cell)
            return self._late[cell]
        return self._budgets.get(cell)

    def _publish(self, parent: Content, stream: str, text: str) -> None:
        self._session.send(
            self._pub_thread,
            "stream",
            {"name": stream, "text": text},
            parent={"header": parent},
            ident=f"stream.{stream}".encode(),
        )

    def forget(self) -> None:
        """Start again in a forked worker: the rank itself sends what it had queued."""
        self.lock = threading.RLock()
        self._runs, self._size, self._scheduled, self._budgets = [], 0, False, {}


class PubThread(BasePubThread):
    """Sends a rank's outputs, in its own thread."""

    def __init__(self, socket: Any, session: Any, pipe: str) -> None:
        self.sent = 0
        """The number of sent messages."""
        self._woken = self._ticking = False
        self._calls: deque[Callable[[], Any]] = deque()
        self._subscriptions: Counter[bytes] = Counter()
        super().__init__(socket, session, pipe)
        session.pack = partial(_pack, session.pack)
        self.outbox = Outbox(session, self)
        """Printed text; it is sent before any other message."""
        self.captured: list[Any] = []
        """Both streams, see `RankStream`."""

    def on_subscription(self, topic: bytes, more: bool) -> None:
        """Count the subscribers of a topic."""
        self._subscriptions[topic] += 1 if more else -1

    def wanted(self, topic: bytes) -> bool:
        """Tell whether a client would get messages of this topic."""
        return any(n > 0 and topic.startswith(s) for s, n in list(self._subscriptions.items()))

    def schedule(self, call: Callable[[], Any]) -> None:
        """Call something in the thread; wake it once for all waiting calls, unlike ipykernel."""
        if not self.thread.is_alive():
            call()
            return
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            self.io_loop.add_callback(self._call)

    def send_soon(self, frames: list[bytes]) -> None:
        """Send a message without a hurry: at once, or a moment after the last one.

        Waking the thread for each would take longer than a small cell.
        """
        self._calls.append(partial(self.socket.send_multipart, frames))
        if not self._ticking:
            self._ticking = True
            self.schedule(partial(self.io_loop.call_later, _TICK, self._tick))

    def _tick(self) -> None:
        self._ticking = False  # first: a message that is queued after the next line starts a tick
        if self._calls:
            self._ticking = True
            self.io_loop.call_later(_TICK, self._tick)
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


def _only_text(content: bytes) -> str:
    """Return the text of a result that has nothing else."""
    data = {} if b'"image/' in content else json.loads(content)["data"]
    text = data.get("text/plain") if len(data) == 1 else None
    return f"{text}\n" if isinstance(text, str) else ""


def _pack(pack: Callable[[Any], bytes], message: Any) -> bytes:
    """Serialize a part of a message, also one with lone surrogates."""
    try:
        return pack(message)
    except UnicodeEncodeError:
        text = json.dumps(message, default=json_default, ensure_ascii=False)
        return _SURROGATE.sub(lambda found: rf"\\u{ord(found[0]):x}", text).encode()
