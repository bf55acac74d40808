"""A table of variables: what each is on which ranks, and whether it is the same there."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.protocol.ranks.variable_messages import VariablesReply
from ..common.rank_specs import format_ranks
from ..common.units import format_bytes
from .variable_list import Content, Form, list_variables

HEAD = ("name", "ranks", "type", "shape", "dtype", "device", "size", "content")
_MOST_DEVICES = 3
_CONTENT: dict[Content, str] = {"single": "on this rank only", "incomparable": "-"}
"""What is not said as it is named."""


def variable_rows(said: Mapping[int, VariablesReply]) -> list[tuple[str, ...]]:
    """Return the rows of the table, `HEAD` first: one for each form that a variable has."""
    rows: list[tuple[str, ...]] = [HEAD]
    for variable in list_variables(said, {}):
        content = _CONTENT.get(variable.content, variable.content) if len(said) > 1 else "-"
        for form in variable.forms:
            rows.append((variable.name, format_ranks(form.ranks), *_cells(form), content))
    return rows


def _cells(form: Form) -> tuple[str, ...]:
    """Return type, shape, dtype, device and size."""
    devices = form.devices
    if len(devices) > _MOST_DEVICES:
        devices = [devices[0], "…", devices[-1]]
    size = format_bytes(form.nbytes)
    return form.type, _shape(form), ",".join(form.dtypes) or "-", ",".join(devices) or "-", size


def _shape(form: Form) -> str:
    if form.items is not None:
        return f"{form.items} items"
    if form.shape is None:
        return "-"
    shape = f"({', '.join(map(str, form.shape))})"
    return f"{form.shard} of {shape}" if form.shard else shape
