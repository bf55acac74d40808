"""Compares variables of all ranks, by what the ranks tell about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from ..common.protocol.ranks.variable_messages import Leaf, VariablesReply

Group = tuple[list[int], Leaf]
"""Ranks on which a leaf is the same, and that leaf."""
Finding = Literal["equal", "differs", "sharded", "incomparable"]


@dataclass(frozen=True)
class Compared:
    """A leaf of a variable on all ranks; `groups` are of equal leaves, the largest first."""

    path: str
    finding: Finding
    groups: list[Group]
    missing: list[int] = field(default_factory=list)

    @property
    def odd(self) -> list[int]:
        """The ranks that differ from the majority; none if there is no majority."""
        (most, _), *others = self.groups
        rest = [rank for ranks, _ in others for rank in ranks]
        return sorted(rest) if len(most) > len(rest) else []


def compare(said: Mapping[int, VariablesReply]) -> list[Compared]:
    """Compare all leaves of all variables, in the order of the first rank that has them."""
    by_path: dict[str, dict[int, Leaf]] = {}
    variables = [(rank, one) for rank, reply in said.items() for one in reply.variables]
    unchecked = {variable.name for _, variable in variables if not variable.checked}
    for rank, variable in variables:
        for leaf in variable.leaves:
            if variable.name in unchecked:  # on some ranks, perhaps
                leaf = msgspec.structs.replace(leaf, digest="")
            by_path.setdefault(leaf.path, {})[rank] = leaf
    return [_compare(path, leaves, said) for path, leaves in by_path.items()]


def _compare(path: str, leaves: Mapping[int, Leaf], ranks: Iterable[int]) -> Compared:
    missing = [rank for rank in ranks if rank not in leaves]
    groups: dict[tuple[object, ...], Group] = {}
    for rank, leaf in leaves.items():
        content = (leaf.type, leaf.shape, leaf.dtype, leaf.digest)
        groups.setdefault((leaf.shard, *content), ([], leaf))[0].append(rank)
    parts: dict[str, int] = {}
    for shard, *_ in groups:
        parts[str(shard)] = parts.get(str(shard), 0) + 1
    finding: Finding = "equal"
    if missing or any(count > 1 for count in parts.values()):
        finding = "differs"
    elif not all(leaf.digest for leaf in leaves.values()):
        finding = "incomparable"
    elif len(parts) > 1:
        finding = "sharded"
    ordered = sorted(groups.values(), key=lambda group: (-len(group[0]), group[0]))
    return Compared(path, finding, ordered, missing)


class History:
    """Remembers when contents were equal, to say since which cell they differ."""

    def __init__(self) -> None:
        self._equal: dict[str, dict[int, int]] = {}
        self._since: dict[str, str] = {}

    def note(self, found: Iterable[Compared], said: Mapping[int, VariablesReply]) -> dict[str, str]:
        """Take a comparison; return since when differences exist, by path, where that is known."""
        ran = {rank: reply.ran for rank, reply in said.items()}
        for compared in found:
            path = compared.path
            if compared.finding == "equal":
                self._equal[path] = ran
                self._since.pop(path, None)
            elif compared.finding == "differs" and path not in self._since:
                self._since[path] = _name_cells(self._equal.get(path, {}), said)
        return self.since

    @property
    def since(self) -> dict[str, str]:
        """Since when differences exist, by path, where that is known."""
        return {path: since for path, since in self._since.items() if since}


def _name_cells(equal: Mapping[int, int], said: Mapping[int, VariablesReply]) -> str:
    """Name the cells that ran since contents were equal; empty if that is not known."""
    cells: set[int] = set()
    for rank, reply in said.items():
        ran = reply.ran - equal.get(rank, -1)
        if rank not in equal or not 0 <= ran <= len(reply.cells):
            return ""
        cells.update(reply.cells[len(reply.cells) - ran :])
    if not cells or 0 in cells:
        return ""
    first, *_, last = names = [f"In[{number}]" for number in sorted(cells)] * 2
    if len(cells) == 1:
        return f"since {first}"
    return (
        f"since {' or '.join(names[: len(cells)])}" if len(cells) < 4 else f"since {first}–{last}"
    )
