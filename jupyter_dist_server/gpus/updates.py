"""Who is told when GPUs, their samples or the sampler's settings have changed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ..common.protocol.sampler_messages import SamplerSettings
from .metrics import Value

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Update:
    """What has changed."""

    kind: str
    """``"sample"``, ``"inventory"``, ``"processes"``, ``"errors"`` or ``"stale"``."""
    time: float
    values: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Of a sample: by metric and UUID, only what was read just now."""


class Updates:
    """Callbacks for updates, and for the settings of the sampler."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Update], None]] = []
        self._followers: list[Callable[[SamplerSettings | None], None]] = []

    def follow_settings(
        self, callback: Callable[[SamplerSettings | None], None]
    ) -> Callable[[], None]:
        """Call a function with the sampler's settings, `None` for no sampling."""
        self._followers.append(callback)
        return lambda: self._followers.remove(callback)

    def listen(self, callback: Callable[[Update], None]) -> Callable[[], None]:
        """Call a function with each update; return what ends that. It is no interest."""
        self._listeners.append(callback)

        def stop() -> None:
            with suppress(ValueError):
                self._listeners.remove(callback)

        return stop

    def _notify(self, update: Update) -> None:
        for callback in list(self._listeners):
            try:
                callback(update)
            except Exception:  # the other listeners are called all the same
                _LOG.exception("A listener of the sampler failed")

    def _notify_settings(self, settings: SamplerSettings | None) -> None:
        for follow in self._followers:
            follow(settings)
