"""A table of variables: what each is on which ranks, and whether it is the same there."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.protocol.variable_messages import Leaf, Variable, VariablesReply
from ..common.rank_specs import format_ranks
from ..common.units import format_bytes
from .divergence import compare

HEAD = ("name", "ranks", "type", "shape", "dtype", "device", "size", "content")
_MOST_DEVICES = 3


def variable_rows(said: Mapping[int, VariablesReply]) -> list[tuple[str, ...]]:
    """Return the rows of the table, `HEAD` first: one for each form that a variable has."""
    forms: dict[str, dict[tuple[str, ...], dict[int, Variable]]] = {}
    for rank, reply in said.items():
        for variable in reply.variables:
            by_form = forms.setdefault(variable.name, {})
            by_form.setdefault(_form(variable), {})[rank] = variable
    rows: list[tuple[str, ...]] = [HEAD]
    for name in sorted(forms):
        content = _content(name, said)
        for form, variables in forms[name].items():
            leaves = [leaf for variable in variables.values() for leaf in variable.leaves]
            kind, shape, dtype, size = form
            devices = [*dict.fromkeys(leaf.device for leaf in leaves if leaf.device)]
            if len(devices) > _MOST_DEVICES:
                devices = [devices[0], "…", devices[-1]]
            where = ",".join(devices) or "-"
            rows.append((name, format_ranks(variables), kind, shape, dtype, where, size, content))
    return rows


def _form(variable: Variable) -> tuple[str, ...]:
    """Return type, shape, dtype and size, as they are shown."""
    leaves = variable.leaves
    size = format_bytes(sum(leaf.nbytes for leaf in leaves))
    dtypes = [*dict.fromkeys(leaf.dtype for leaf in leaves if leaf.dtype)]
    shape = f"{len(leaves)} items"
    if len(leaves) == 1 and leaves[0].path == variable.name:
        shape = _shape(leaves[0])
    return variable.type, shape, ",".join(dtypes) or "-", size


def _shape(leaf: Leaf) -> str:
    if leaf.shape is None:
        return "-"
    shape = f"({', '.join(map(str, leaf.shape))})"
    return f"{leaf.shard} of {shape}" if leaf.shard else shape


def _content(name: str, said: Mapping[int, VariablesReply]) -> str:
    """Say how the content of a variable compares between the ranks that have it."""
    of_it: dict[int, VariablesReply] = {}
    for rank, reply in said.items():
        if these := [variable for variable in reply.variables if variable.name == name]:
            of_it[rank] = VariablesReply(status="ok", variables=these)
    if len(said) == 1:
        return "-"
    if len(of_it) == 1:
        return "on this rank only"
    findings = {compared.finding for compared in compare(of_it)}
    for finding in ("differs", "sharded", "equal"):
        if finding in findings:
            return finding
    return "-"
