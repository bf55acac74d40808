"""Compares models and optimizers after each cell on ranks, and speaks only of what differs."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell

from ..common.errors import DistError
from .gather_and_compare import Comparison
from .scripts.ran_cells import RanCell
from .session.current_pool import CurrentPool


class EachCell:
    """Switched on and off by ``%dist_check --each-cell``.

    Parameters
    ----------
    shell : InteractiveShell
        The notebook's.
    pool : CurrentPool
        The notebook's.
    comparison : Comparison
        What remembers since when variables differ.
    """

    def __init__(self, shell: InteractiveShell, pool: CurrentPool, comparison: Comparison) -> None:
        self._shell, self._pool, self._comparison = shell, pool, comparison
        self._is_on = False
        self._last: RanCell | None = None
        """The last cell that was looked at."""
        self._told: set[str] = set()
        """What differed then."""

    def switch(self, *, on: bool) -> None:
        """Begin or end to compare."""
        if on != self._is_on:
            events = self._shell.events
            (events.register if on else events.unregister)("post_run_cell", self._look)
        self._is_on = on
        self._last, self._told = self._pool.ran.last, set()

    def _look(self, *_: object) -> None:
        last = self._pool.ran.last
        if last is None or last is self._last:
            return
        self._last = last
        try:
            differing = self._comparison.differing(range(self._pool.require()[0].world_size))
        except DistError:  # there is nothing to compare, a rank died, or another cell runs
            return
        new = [sentence for path, sentence in differing.items() if path not in self._told]
        self._told = set(differing)
        if new:
            print(new[0] if len(new) == 1 else f"{new[0]} {len(new) - 1} more began to differ.")
