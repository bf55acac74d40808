"""How far the clock of another node is ahead, from questions and answers, as NTP does it.

See https://www.rfc-editor.org/rfc/rfc5905#section-8.
"""

from __future__ import annotations

from collections import deque

_KEPT = 16
"""Round trips of which the shortest counts: what waited on its way tells less."""


class ClockOffset:
    """Of one node."""

    def __init__(self) -> None:
        self._trips: deque[tuple[float, float]] = deque(maxlen=_KEPT)
        """How long each took, and how far ahead the clock there seemed to be."""

    @property
    def count(self) -> int:
        """How many round trips are known."""
        return len(self._trips)

    @property
    def ahead(self) -> float | None:
        """Seconds by which the clock there is ahead of ours; `None` if that is not known yet."""
        return min(self._trips)[1] if self._trips else None

    def add(self, asked: float, answered: float, heard: float) -> None:
        """Take a round trip.

        Parameters
        ----------
        asked, heard : float
            When the question was sent and its answer came, by our clock.
        answered : float
            When it was answered, by the clock there.
        """
        self._trips.append((heard - asked, answered - (asked + heard) / 2))
