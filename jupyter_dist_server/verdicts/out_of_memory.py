"""What a cell that ran out of memory asked for, and which variables hold memory, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..common.protocol.ranks.memory_messages import Exhausted, Held, MemoryReply
from ..common.rank_specs import name_ranks
from ..common.units import format_bytes

_NAMES = ("OutOfMemoryError", "MemoryError", "_ArrayMemoryError")
"""torch's on a GPU, Python's and NumPy's; torch has none on the CPU."""
_ON_CPU = "can't allocate memory"
_ON_GPU = "CUDA out of memory"
_ASKED = re.compile(r"(?:allocate|Requested) (\d[\d.]*) ?(bytes|[KMGTP]iB)", re.IGNORECASE)
_BIGGEST = 3
"""Variables that are named."""


def is_out_of_memory(name: str, value: str) -> bool:
    """Tell whether an error says that there is no more memory."""
    return name in _NAMES or _ON_CPU in value


def out_of_memory_sentences(
    errors: Mapping[int, str],
    said: Mapping[int, MemoryReply],
    nodes: Mapping[int, str] | None = None,
) -> Iterator[str]:
    """Say how much was asked for, and what holds memory.

    `errors` are the texts by rank, `said` what ranks reply about their memory, and `nodes` the
    nodes of ranks, if there are several.
    """
    alike: dict[tuple[str, str, str], list[int]] = {}
    for rank, error in sorted(errors.items()):
        reply = said.get(rank)
        if reply and not reply.busy:
            alike.setdefault((_asked(error), _held(reply), _of_torch(error, reply)), []).append(
                rank
            )
    for (asked, held, of_torch), ranks in alike.items():
        who = name_ranks(ranks).capitalize()
        whose = "its variables hold" if len(ranks) == 1 else "the variables of each hold"
        if asked:
            yield f"{who} asked for {asked}; {whose} {held}."
        else:
            yield f"The variables of {name_ranks(ranks)} hold {held}."
        if of_torch:
            yield f"torch {of_torch}."
    on_gpus = {
        rank: said[rank].exhausted
        for rank, error in sorted(errors.items())
        if _ON_GPU in error and rank in said
    }
    yield from _exhausted_sentences({r: one for r, one in on_gpus.items() if one}, nodes or {})


def _exhausted_sentences(
    on_gpus: Mapping[int, Exhausted], nodes: Mapping[int, str]
) -> Iterator[str]:
    alike: dict[str, list[int]] = {}
    for rank, exhausted in on_gpus.items():
        alike.setdefault(_lines(exhausted), []).append(rank)
    for lines, ranks in alike.items():
        if lines:
            yield f"The most memory of {name_ranks(ranks)} was allocated at {lines}."
    folders: dict[tuple[str, Path], dict[int, Path]] = {}
    for rank, one in on_gpus.items():
        if one.snapshot:
            file = Path(one.snapshot)
            folders.setdefault((nodes.get(rank, ""), file.parent), {})[rank] = file
    for (node, _), files in folders.items():
        file, *others = files.values()
        where = f"{file.with_name('memory-*.pickle') if others else file}{node and f' on {node}'}"
        yield (
            f"The allocations of {name_ranks(list(files))} are in {where} until the pool stops: "
            "https://pytorch.org/memory_viz shows them."
        )


def _lines(exhausted: Exhausted) -> str:
    return ", ".join(
        f"{line.place.file} line {line.place.line} ({format_bytes(line.nbytes)})"
        for line in exhausted.by_line[:_BIGGEST]
    )


def _asked(error: str) -> str:
    found = _ASKED.search(error)
    if not found:
        return ""
    number, unit = found.groups()
    return format_bytes(int(number)) if unit == "bytes" else f"{number} {unit}"


def _held(reply: MemoryReply) -> str:
    if not reply.held:
        return "no tensors or arrays"
    named = [_name(one) for one in reply.held[:_BIGGEST]]
    return f"{format_bytes(reply.in_all)} ({', '.join(named)})"


def _name(held: Held) -> str:
    made = "" if held.cell is None else f" made in In[{held.cell}]"
    return f"`{held.name}` {format_bytes(held.nbytes)}{made}"


def _of_torch(error: str, reply: MemoryReply) -> str:
    use = reply.torch
    if not use:
        return ""
    # What failed is freed by now, and explains nothing.
    then = reply.exhausted.allocated if reply.exhausted and _ON_GPU in error else 0
    had = "had allocated" if then else "has allocated"
    return f"{had} {format_bytes(then or use.allocated)} of {format_bytes(use.total)} on the GPU"
