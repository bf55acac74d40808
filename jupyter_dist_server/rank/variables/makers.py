"""The cell that has made a variable."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any


class Makers:
    """Notes the variables that are new, or other objects than before, when a cell ends.

    Objects are not kept alive. Those without weak references, such as numbers and lists, are
    identified by their address, which may be used again.
    """

    def __init__(self) -> None:
        self._known: dict[Any, tuple[Any, int | None]] = {}
        """By name: a reference to the object, and the cell's number in the notebook."""

    def note(self, variables: Mapping[Any, Any], cell: int | None) -> None:
        """Note what has changed since the last time; `None` is a change outside of cells."""
        known = self._known
        self._known = {
            name: known[name]
            if name in known and _is(known[name][0], value)
            else (_reference(value), cell)
            for name, value in list(variables.items())
            # IPython's copies of cells are left out; `globals()` takes any key.
            if not (type(value) is str and isinstance(name, str) and name.startswith("_i"))
        }

    def cell_of(self, name: str, value: Any) -> int | None:
        """Return the cell that made a variable, if it still is the same object."""
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
