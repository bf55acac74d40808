"""What has changed of GPUs, and of how they are sampled, for whoever listens."""

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
    """Seconds since 1970."""
    values: dict[str, dict[str, Value]] = field(default_factory=dict)
    """Of a sample: by metric and UUID, only what was read just now."""


class Updates:
    """Those who listen to updates, and those who follow how GPUs are sampled."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Update], None]] = []
        self._followers: list[Callable[[SamplerSettings | None], None]] = []

    def follow_settings(
        self, callback: Callable[[SamplerSettings | None], None]
    ) -> Callable[[], None]:
        """Have a function called with how GPUs are sampled, `None` for not at all."""
        self._followers.append(callback)
        return lambda: self._followers.remove(callback)

    def listen(self, callback: Callable[[Update], None]) -> Callable[[], None]:
        """Have a function called with every update; return what ends that. It is no interest."""
        self._listeners.append(callback)

        def stop() -> None:
            with suppress(ValueError):
                self._listeners.remove(callback)

        return stop

    def notify(self, update: Update) -> None:
        """Tell an update to all; a mistake of one must not keep it from the others."""
        for callback in list(self._listeners):
            try:
                callback(update)
            except Exception:
                _LOG.exception("A listener of the sampler failed")

    def notify_settings(self, settings: SamplerSettings | None) -> None:
        """Tell how GPUs are sampled from now on."""
        for follow in self._followers:
            follow(settings)
