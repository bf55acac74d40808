"""Pickling variables for ranks, and unpickling values of ranks, with errors that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...common.errors import DistError
from ...common.pickling import Packed, pack, unpack
from .move_report import why_of

RESERVED = frozenset(["torch", "dist", "rank", "local_rank", "world_size", "gpu_id", "device"])
"""Variables that a pool gives its ranks, and that are not overwritten."""


def pack_variables(values: dict[str, Any]) -> Packed:
    """Pickle variables of the notebook.

    Raises
    ------
    DistError
        If a name is not allowed, or a value cannot be sent.
    """
    for name in values:
        if not name.isidentifier():
            raise DistError("bad_name", f"“{name}” is not a valid variable name.", "Use --as NAME.")
        if name in RESERVED:
            raise DistError(
                "bad_name",
                f"`{name}` is a reserved variable of ranks.",
                "Choose another name with --as NAME.",
            )
    try:
        return pack(values, values.values())
    except Exception:
        for name, value in values.items():
            try:
                pack(value, [value])
            except Exception as error:
                raise DistError(
                    "value_unsendable",
                    f"`{name}` of the notebook cannot be sent: {why_of(error)}.",
                ) from error
        raise


def unpack_value(expression: str, rank: int, buffers: Sequence[Any]) -> Any:
    """Unpickle a value of a rank.

    Raises
    ------
    DistError
        If it cannot be read here.
    """
    try:
        return unpack(buffers)
    except Exception as error:
        raise DistError(
            "value_unreadable",
            f"`{expression}` of rank {rank} cannot be read in the notebook: "
            f"{type(error).__name__}: {why_of(error)}.",
            _how_to_read(expression, error),
        ) from error


def _how_to_read(expression: str, error: Exception) -> str:
    """Return what to do about an error, where that is known."""
    if isinstance(error, ImportError):
        return "Install its modules in the notebook's environment too."
    if "process group" in str(error):  # which torch wants to wrap a model again
        return (
            "The notebook has no process group. Of a DistributedDataParallel model, pull "
            f"`{expression}.module` or `{expression}.state_dict()`."
        )
    return ""
