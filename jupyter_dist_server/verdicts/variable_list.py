"""What the variables of ranks are, and whether each is the same on all ranks that have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ..common.protocol.ranks.variable_messages import Variable, VariablesReply
from .compare_variables import Compared, compare
from .divergence_sentences import how_it_differs

Content = Literal["equal", "differs", "sharded", "incomparable", "unchecked", "single"]

_MOST = 8
"""Differences of a variable that are told."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """What a variable is on some ranks."""

    ranks: list[int]
    type: str
    items: int | None
    """How many tensors and values are in it; `None` for one that is a tensor or value itself."""
    shape: tuple[int, ...] | None
    """Of a DTensor, that of all parts together."""
    shard: str
    """The part of a DTensor that these ranks hold."""
    dtypes: list[str]
    devices: list[str]
    nbytes: int
    """On one rank; the most of these."""


class ListedVariable(msgspec.Struct, frozen=True, kw_only=True):
    """A variable on all ranks."""

    name: str
    content: Content
    """``unchecked`` if it holds too much to be compared unasked; ``single`` if one rank has it."""
    nbytes: int
    """On the rank where it holds most."""
    forms: list[Form]
    differences: list[str]
    """Sentences on what differs."""
    differing: int
    """How many tensors and values differ."""


def list_variables(
    said: Mapping[int, VariablesReply], since: Mapping[str, str]
) -> list[ListedVariable]:
    """Return the variables by name.

    Parameters
    ----------
    said : mapping
        What each rank has told.
    since : mapping
        Since when what differs does so, by path, where it is known.
    """
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
