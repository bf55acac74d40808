"""Compares variables of all ranks, by what the ranks tell about them; the result in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from ..common.protocol.ranks.variable_messages import Leaf, VariablesReply
from ..common.rank_specs import name_ranks

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


# -- in words -----------------------------------------------------------------------------------

_MOST = 8
_MOST_SHARDED = 3


def sentences(
    found: Sequence[Compared],
    said: Mapping[int, VariablesReply],
    since: Mapping[str, str],
    largest: Mapping[str, float],
) -> list[str]:
    """Return what to say about a comparison of `said`, line by line.

    By path, `since` says since when it differs, and `largest` the largest difference.
    """
    by_finding: dict[str, list[Compared]] = {}
    for compared in found:
        by_finding.setdefault(compared.finding, []).append(compared)
    differing = by_finding.get("differs", [])
    lines = [how_it_differs(compared, since, largest) for compared in differing[:_MOST]]
    if more := len(differing) - _MOST:
        lines += [f"{more} more {'differs' if more == 1 else 'differ'}."] if more > 0 else []
    lines += _of_shards(by_finding.get("sharded", []))
    if unknown := by_finding.get("incomparable", []):
        names = ", ".join(f"`{c.path}` ({c.groups[0][1].type})" for c in unknown[:_MOST])
        rest = f" and {len(unknown) - _MOST} more" if len(unknown) > _MOST else ""
        lines.append(f"Cannot be compared: {names}{rest}.")
    if equal := len(by_finding.get("equal", [])):
        lines.append(_of_equal(equal, equal < len(found), sorted(said)))
    return [*lines, *_of_random(said)]


def how_it_differs(
    compared: Compared, since: Mapping[str, str], largest: Mapping[str, float] | None = None
) -> str:
    """Return a sentence on a leaf that differs; see `sentences`."""
    path = compared.path
    when = f" {since[path]}" if path in since else ""
    size = f" (max difference {largest[path]:.2g})" if largest and path in largest else ""
    return f"`{path}` {_how(compared, when)}{size}."


def _how(compared: Compared, when: str) -> str:
    groups = compared.groups
    if compared.missing:
        have = sorted(rank for ranks, _ in groups for rank in ranks)
        return f"is only on {name_ranks(have)}, not on {name_ranks(compared.missing)}{when}"
    for forms in (
        [leaf.text for _, leaf in groups],
        [f"a {leaf.type}" for _, leaf in groups],
        [f"of shape {leaf.shape or ()}" for _, leaf in groups],
        [f"of dtype {leaf.dtype}" for _, leaf in groups],
    ):
        if all(forms) and len(set(forms)) == len(groups) and len(groups) < 4:
            parts = [
                f"{form} on {name_ranks(who)}" for form, (who, _) in zip(forms, groups, strict=True)
            ]
            return f"is {' and '.join(parts)}{when}"
    if compared.odd:
        return f"differs on {name_ranks(compared.odd)}{when}"
    if len(groups) == 2:
        return f"differs between {name_ranks(groups[0][0])} and {name_ranks(groups[1][0])}{when}"
    every = sorted(rank for ranks, _ in groups for rank in ranks)
    return f"has {len(groups)} different contents on {name_ranks(every)}{when}"


def _of_shards(sharded: Sequence[Compared]) -> Iterator[str]:
    for compared in sharded[:_MOST_SHARDED]:
        shape = compared.groups[0][1].shape
        who = sorted((ranks, leaf.shard) for ranks, leaf in compared.groups)
        held = ", ".join(f"{name_ranks(ranks)} {shard}" for ranks, shard in who[:_MOST])
        more = f" and {len(who) - _MOST} more parts" if len(who) > _MOST else ""
        yield f"`{compared.path}` {shape} is sharded: {held}{more}."
    if (more_tensors := len(sharded) - _MOST_SHARDED) > 0:
        yield f"{more_tensors} more are sharded; their copies are equal."


def _of_equal(count: int, others: bool, ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return "There is only one rank to compare."
    what = "other is" if others and count == 1 else "others are" if others else ""
    if what:
        return f"{count} {what} equal."
    if count == 1:
        return f"Equal on {name_ranks(ranks)}."
    return f"All {count} tensors and values are equal on {name_ranks(ranks)}."


def _of_random(said: Mapping[int, VariablesReply]) -> Iterator[str]:
    """Tell whether ranks draw the same random numbers."""
    of_libraries: dict[str, list[str]] = {}
    for reply in said.values():
        for name, state in reply.random.items():
            of_libraries.setdefault(name, []).append(state)
    compared = {name: states for name, states in of_libraries.items() if len(states) > 1}
    if not compared:
        return
    same = [name for name, states in sorted(compared.items()) if len({*states}) < len(states)]
    if same:
        yield (
            f"RNG states of {' and '.join(same)} are the same on several ranks: "
            "these draw the same random numbers."
        )
    else:
        yield "RNG states differ, as they should."
