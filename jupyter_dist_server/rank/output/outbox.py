"""The queue of a rank's output: in order, without delay, and bounded."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from jupyter_client.session import DELIM

from ...common.protocol.jupyter_messages import Content
from .text_limit import Budget

SOON = 0.002
"""Seconds for which the first text after a pause waits, so that a line and its end go together."""
STEADY = 0.03
"""Seconds between two messages while a rank prints all the time."""
_DISPLAYED = (b"display_data", b".execute_result")
"""Topics of what is displayed, and of ``clear_output``."""
_PAUSE = 0.1
_MESSAGE = 1 << 16
"""Characters at which a message goes out at once."""
_LATE = 100
"""How many cells that have ended are watched for what their threads print."""


class Outbox:
    """Text of both streams of a rank, in the order in which it was printed.

    Parameters
    ----------
    session : Session
        Makes the messages.
    pub_thread : IOPubThread
        Sends them.
    """

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
        """Of cells that have ended, those that printed last at the end."""

    def begin(self, cell: str, budget: Budget) -> None:
        """Bound what a cell, named by its message's id, may show."""
        self._budgets[cell] = budget

    def end(self, cell: str, parent: Content) -> None:
        """Send what a cell has printed, the end of a cut output too."""
        self.send()
        budget = self._budgets.pop(cell)
        if last := budget.close():
            self._publish(parent, "stdout", last)
        self._late[cell] = budget.for_late_output()
        if len(self._late) > _LATE:
            self._late.popitem(last=False)

    def put(self, parent: Content, stream: str, text: str) -> None:
        """Take text, with the lock held; it goes out soon."""
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
        delay = SOON if time.monotonic() - self._sent_at > _PAUSE else STEADY
        loop = self._pub_thread.io_loop
        self._pub_thread.schedule(lambda: loop.call_later(delay, self.send))

    def flush(self) -> None:
        """Send now, unless a message went out just before; then the next one takes it along."""
        if time.monotonic() - self._sent_at > SOON:
            self.send()

    def send(self) -> None:
        """Send all there is, before anything else that is published after it."""
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
        """Tell whether a message is to be sent: all are, but a display over its cell's budget."""
        if not frames[0].endswith(_DISPLAYED):
            return True
        header, parent, content = (bytes(frames[frames.index(DELIM) + n]) for n in (2, 3, 5))
        with self.lock:
            cell = json.loads(parent)
            budget = self._budget_of(cell.get("msg_id", ""))
            if budget is None:
                return True
            if json.loads(header)["msg_type"] == "clear_output":
                budget.displays.clear()
                return True
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
        """Begin anew in a forked worker: what the rank was about to send is the rank's."""
        self.lock = threading.RLock()
        self._runs, self._size, self._scheduled, self._budgets = [], 0, False, {}
