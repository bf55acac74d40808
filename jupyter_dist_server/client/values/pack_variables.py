"""Pickles variables for ranks and unpickles their values, with errors that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...common.errors import DistError
from ...common.pickling import Packed, pack, unpack
from ...common.protocol.ranks.rank_messages import ValueReply
from ...common.rank_specs import name_ranks

RESERVED = frozenset(["torch", "dist", "rank", "local_rank", "world_size", "gpu_id", "device"])
"""Variables that a pool sets on its ranks, and that are not overwritten."""


def pack_variables(values: dict[str, Any]) -> Packed:
    """Pickle variables of the notebook; raises `DistError` if a name or a value is refused."""
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
    """Unpickle a value of a rank; raises `DistError` if it cannot be read here."""
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
    """Return what to do about an error, if that is known."""
    if isinstance(error, ImportError):
        return "Install its modules in the notebook's environment too."
    if "process group" in str(error):  # which torch wants to wrap a model again
        return (
            "The notebook has no process group. Of a DistributedDataParallel model, pull "
            f"`{expression}.module` or `{expression}.state_dict()`."
        )
    return ""


_IMPORT_ERRORS = ("ModuleNotFoundError", "ImportError")
_INSTALL = "Its modules must be installed there, or be in the ranks' working directory."

Replies = dict[int, tuple[ValueReply, list[Any]]]
"""By rank, with the buffers that came along."""


def raise_failures(expression: str, replies: Replies) -> None:
    """Raise the `DistError` for ranks that replied with a failure, if any."""
    failures: dict[tuple[str, str], list[int]] = {}
    for rank, (reply, _) in sorted(replies.items()):
        if reply.status not in ("ok", "no_memory"):
            failures.setdefault((reply.status, reply.why), []).append(rank)
    for (status, why), ranks in failures.items():
        where = name_ranks(ranks)
        why = why.strip().rstrip(".")
        if status == "missing":
            raise value_missing(why, ranks)
        if status == "unsendable":
            raise DistError("value_unsendable", f"`{expression}` of {where} cannot be sent: {why}.")
        if status == "unreadable":
            raise DistError(
                "value_unreadable",
                f"{expression.capitalize()} cannot be read on {where}: {why}.",
                _INSTALL if why.startswith(_IMPORT_ERRORS) else "",
            )
        raise DistError("value_failed", f"`{expression}` failed on {where}: {why}.")


def value_missing(name: str, ranks: Sequence[int], field: str | None = None) -> DistError:
    """Return what to raise if ranks do not have a variable."""
    return DistError(
        "value_missing",
        f"{name_ranks(ranks).capitalize()} {'has' if len(ranks) == 1 else 'have'} no `{name}`.",
        "Run the cell that defines it on these ranks first.",
        field,
    )


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
    """Return an error's message, as a part of a sentence."""
    return str(error).rstrip(".") or type(error).__name__
