"""Which cell has made a variable."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any


class Makers:
    """Notes the variables that are new, or other objects than before, when a cell ends.

    Objects are not kept alive. Those without weak references, such as numbers and lists, are told
    apart by their address, which may be used again. IPython's copies of cells (`_i12`) are left
    out: there is one more after each cell.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, int | None]] = {}
        """By name: what tells the object, and the notebook's number of the cell."""

    def note(self, variables: Mapping[Any, Any], cell: int | None) -> None:
        """Note what has changed since the last time; `None` is no cell, such as a push."""
        known = self._known
        self._known = {
            name: known[name]
            if name in known and _is(known[name][0], value)
            else (_reference(value), cell)
            for name, value in list(variables.items())
            # `globals()` takes any key.
            if not (type(value) is str and isinstance(name, str) and name.startswith("_i"))
        }

    def cell_of(self, name: str, value: Any) -> int | None:
        """Return the cell that made a variable, if it is still what that cell made."""
        reference, cell = self._known.get(name, (None, None))
        return cell if _is(reference, value) else None


def _reference(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:
        return id(value)


def _is(reference: Any, value: Any) -> bool:
    if isinstance(reference, weakref.ref):
        return reference() is value
    return bool(reference == id(value))
