"""Which cell has made a variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Makers:
    """Notes the variables that are new, or other objects than before, when a cell ends.

    Objects are told apart by their address, and are not kept alive.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int | None]] = {}
        """By name: the address, and the notebook's number of the cell."""

    def note(self, variables: Mapping[str, Any], cell: int | None) -> None:
        """Note what has changed since the last time; `None` is no cell, such as a push."""
        known = self._known
        self._known = {
            name: known[name]
            if name in known and known[name][0] == id(value)
            else (id(value), cell)
            for name, value in list(variables.items())
        }

    def cell_of(self, name: str, value: Any) -> int | None:
        """Return the cell that made a variable, if it is still what that cell made."""
        address, cell = self._known.get(name, (0, None))
        return cell if address == id(value) else None
