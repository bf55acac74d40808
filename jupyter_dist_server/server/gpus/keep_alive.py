"""Keeps the sampler running for some time after each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ...gpus.telemetry import Telemetry

PATIENCE = 300.0
"""Seconds for which the GPUs are sampled after somebody has asked; few ask less often."""


class KeepAlive:
    """Keeps GPUs being sampled for some time after each question.

    Parameters
    ----------
    telemetry : Telemetry
        What samples them.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._release: Callable[[], None] | None = None
        self._end: asyncio.TimerHandle | None = None

    def renew(self) -> None:
        """Note that somebody asks."""
        if self._end:
            self._end.cancel()
        self._release = self._release or self._telemetry.want("gpus")
        self._end = asyncio.get_running_loop().call_later(PATIENCE, self.end)

    def end(self) -> None:
        """Wait for no further question."""
        if self._end:
            self._end.cancel()
        if self._release:
            self._release()
        self._release = self._end = None
