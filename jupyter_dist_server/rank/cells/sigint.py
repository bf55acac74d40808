"""SIGINT in a rank: it ends the cell that runs, and nothing else; `CancelRequest` sends it."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import os
import signal
from typing import Any

from ...common.protocol.ranks.rank_messages import (
    Activity,
    CancelReply,
    CancelRequest,
    Whereabouts,
)
from .. import clock
from ..group.process_group import ProcessGroup
from ..request_handlers import Asked, hears
from ..waits.stacks import whereabouts


def ignore_sigint() -> Any:
    """Ignore SIGINT; return the handler that it had."""
    return on_sigint(_ignore)


def on_sigint(handler: Any) -> Any:
    """Set the handler of SIGINT; return the one that it had.

    `signal.signal` also makes enums of numbers, which takes 10 microseconds, five times a cell.
    """
    return _signal.signal(_signal.SIGINT, handler)


def _ignore(number: int, frame: Any) -> None:
    """Ignore a signal; unlike `SIG_IGN`, programs that the rank starts do not inherit this."""


class InterruptHandlers:
    """How `RankKernel` interrupts its cell."""

    _state: Activity
    _since: float
    group: ProcessGroup

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cancelled: set[str] = set()
        self._running = ""
        self._interrupted_at: Whereabouts | None = None

    def _allow_interrupts(self, cell: str) -> None:
        """Let SIGINT interrupt this cell; it does so at once if it was cancelled meanwhile."""
        # Python's own handler is a C function, so it is in no traceback. It comes first: the
        # control thread interrupts a cell that it sees running once.
        on_sigint(signal.default_int_handler)
        self._running = cell
        if cell in self._cancelled:
            raise KeyboardInterrupt

    def _end_interrupts(self) -> None:
        """Ignore interrupts: once the cell has ended, one would end the rank."""
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                ignore_sigint()
                break
        self._running = ""

    def _leave_debugger(self) -> None:
        """Let an interrupted cell end that the debugger has stopped."""

    @hears(CancelRequest)
    def dist_cancel_request(self, asked: Asked[CancelRequest]) -> None:
        """Interrupt a cell, on the control thread, or prevent its start."""
        cell, sent = asked.content.msg_id, asked.content.sent
        # What was meant may have ended while this rank was stopped; the clock may have been set.
        is_meant = bool(cell) or not (0 < sent < self._since <= clock.now())
        if cell:  # first: the main thread sets `_running`, then looks here
            self._cancelled.add(cell)
        running = cell == self._running if cell else is_meant and self._state == "busy"
        answer = CancelReply(running, self._since, whereabouts(), self.group.asked_for)
        if running or (not cell and is_meant):
            self._cancelled.discard(cell)
            self._interrupted_at = self._interrupted_at or answer.whereabouts
            os.killpg(os.getpid(), signal.SIGINT)  # a rank leads its group: `!command` too
            self._leave_debugger()
        asked.reply(answer)
