"""What is said of values that were moved, or could not be."""

from __future__ import annotations

from typing import Any

from ...common.errors import DistError
from ...common.protocol.ranks.rank_messages import ValueReply
from ...common.rank_specs import name_ranks

_IMPORT_ERRORS = ("ModuleNotFoundError", "ImportError")
_INSTALL = "Its modules must be installed there, or be in the ranks' working directory."

Replies = dict[int, tuple[ValueReply, list[Any]]]
"""By rank, with the buffers that came along."""


def raise_failures(expression: str, replies: Replies) -> None:
    """Raise what ranks answered instead of a value: the same answers of several ranks at once.

    Raises
    ------
    DistError
        If one of them has failed.
    """
    failures: dict[tuple[str, str], list[int]] = {}
    for rank, (reply, _) in sorted(replies.items()):
        if reply.status not in ("ok", "no_memory"):
            failures.setdefault((reply.status, reply.why), []).append(rank)
    for (status, why), ranks in failures.items():
        where = name_ranks(ranks)
        why = why.strip().rstrip(".")
        if status == "missing":
            verb = "has" if len(ranks) == 1 else "have"
            raise DistError(
                "value_missing",
                f"{where.capitalize()} {verb} no `{why}`.",
                "Run the cell that defines it on these ranks first.",
            )
        if status == "unsendable":
            raise DistError("value_unsendable", f"`{expression}` of {where} cannot be sent: {why}.")
        if status == "unreadable":
            raise DistError(
                "value_unreadable",
                f"{expression.capitalize()} cannot be read on {where}: {why}.",
                _INSTALL if why.startswith(_IMPORT_ERRORS) else "",
            )
        raise DistError("value_failed", f"`{expression}` failed on {where}: {why}.")


def arrivals(expression: str, replies: Replies) -> list[str]:
    """Say which values left a GPU."""
    on_gpu = {rank: reply.devices for rank, (reply, _) in replies.items() if reply.devices}
    devices = sorted({device for names in on_gpu.values() for device in names})
    return arrival(f"`{expression}`", devices, name_ranks(sorted(on_gpu)) if on_gpu else "")


def arrival(names: str, devices: list[str], owner: str) -> list[str]:
    """Say that values left a GPU, if they were on one."""
    if not devices:
        return []
    return [f"{names} was on {', '.join(devices)} of {owner} and is now on the CPU."]


def why_of(error: BaseException) -> str:
    """Return an error's message, to be put into a sentence."""
    return str(error).rstrip(".") or type(error).__name__
