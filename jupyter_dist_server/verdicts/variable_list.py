"""What the variables of ranks are, and whether each is the same on all; as a table, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ..common.protocol.ranks.variable_messages import Variable, VariablesReply
from ..common.rank_specs import format_ranks
from ..common.units import format_bytes
from .compare_variables import Compared, compare, how_it_differs

Content = Literal["equal", "differs", "sharded", "incomparable", "unchecked", "single"]

_MOST = 8


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What a variable is on some ranks."""

    ranks: list[int]
    type: str
    items: int | None
    """How many tensors and values it contains; `None` for a single tensor or value."""
    shape: tuple[int, ...] | None
    """For a DTensor, that of all parts together."""
    shard: str
    """The part of a DTensor that these ranks hold."""
    dtypes: list[str]
    devices: list[str]
    nbytes: int
    """The most on one of these ranks."""


class ListedVariable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable on all ranks."""

    name: str
    content: Content
    """``unchecked`` if it is too large to be compared unasked; ``single`` if one rank has it."""
    nbytes: int
    forms: list[Form]
    differences: list[str]
    differing: int
    """How many tensors and values differ."""


def list_variables(
    said: Mapping[int, VariablesReply], since: Mapping[str, str]
) -> list[ListedVariable]:
    """Return the variables by name; `since` says, by path, since when differences exist."""
    by_name: dict[str, dict[int, Variable]] = {}
    for rank, reply in sorted(said.items()):
        for variable in reply.variables:
            by_name.setdefault(variable.name, {})[rank] = variable
    return [_listed(name, by_name[name], since, len(said)) for name in sorted(by_name)]


def _listed(
    name: str, variables: Mapping[int, Variable], since: Mapping[str, str], told: int
) -> ListedVariable:
    found = compare(
        {rank: VariablesReply(status="ok", variables=[one]) for rank, one in variables.items()}
    )
    differing = [compared for compared in found if compared.finding == "differs"]
    forms: dict[tuple[object, ...], Form] = {}
    for rank, variable in variables.items():
        form = _form(rank, variable)
        key = (form.type, form.items, form.shape, form.shard, *form.dtypes)
        # The size of a plain Python object says nothing.
        key = (*key, form.nbytes) if form.dtypes else key
        forms[key] = _together(forms[key], form) if key in forms else form
    return ListedVariable(
        name=name,
        content=_content(found, variables, told),
        nbytes=max(form.nbytes for form in forms.values()),
        forms=list(forms.values()),
        differences=[how_it_differs(compared, since) for compared in differing[:_MOST]],
        differing=len(differing),
    )


def _content(found: list[Compared], variables: Mapping[int, Variable], told: int) -> Content:
    if len(variables) == 1:  # of one rank alone nothing is known of others
        return "single" if told > 1 else "incomparable"
    findings = {compared.finding for compared in found}
    if "differs" in findings:
        return "differs"
    if not all(variable.checked for variable in variables.values()):
        return "unchecked"
    # An object in a list that cannot be compared does not hide that the rest is equal.
    return (
        "sharded" if "sharded" in findings else "equal" if "equal" in findings else "incomparable"
    )


def _form(rank: int, variable: Variable) -> Form:
    leaves = variable.leaves
    itself = leaves[0] if len(leaves) == 1 and leaves[0].path == variable.name else None
    return Form(
        ranks=[rank],
        type=variable.type,
        items=None if itself else len(leaves),
        shape=itself.shape if itself else None,
        shard=itself.shard if itself else "",
        dtypes=[*dict.fromkeys(leaf.dtype for leaf in leaves if leaf.dtype)],
        devices=[*dict.fromkeys(leaf.device for leaf in leaves if leaf.device)],
        nbytes=sum(leaf.nbytes for leaf in leaves),
    )


def _together(one: Form, other: Form) -> Form:
    return msgspec.structs.replace(
        one,
        ranks=[*one.ranks, *other.ranks],
        devices=[*dict.fromkeys([*one.devices, *other.devices])],
        nbytes=max(one.nbytes, other.nbytes),
    )


HEAD = ("name", "ranks", "type", "shape", "dtype", "device", "size", "content")
_MOST_DEVICES = 3
_CONTENT: dict[Content, str] = {"single": "on this rank only", "incomparable": "-"}


def variable_rows(said: Mapping[int, VariablesReply]) -> list[tuple[str, ...]]:
    """Return the rows of a table, `HEAD` first: one for each form of a variable."""
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
