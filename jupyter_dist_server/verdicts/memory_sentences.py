"""What uses the memory of ranks, what a training step takes, and why it ran out, in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..common.protocol.ranks.memory_messages import EstimateReply, Exhausted, Held, MemoryReply
from ..common.rank_specs import name_ranks
from ..common.units import format_bytes

_BIGGEST = 3
_UNEVEN = 1.25
"""How many times the median a rank's variables must hold to be mentioned."""
_SMALL = 64 << 20
"""Bytes by which ranks may always differ."""


def memory_rows(said: Mapping[int, MemoryReply]) -> list[tuple[str, ...]]:
    """Return the rows of a table of ranks, its header first."""
    on_gpus = any(reply.torch for reply in said.values())
    of_torch = ("allocated", "reserved", "peak", "GPU") if on_gpus else ()
    rows: list[tuple[str, ...]] = [("rank", "RSS", "PSS", *of_torch, "in variables", "largest")]
    for rank, reply in sorted(said.items()):
        use = reply.torch
        figures = (use.allocated, use.reserved, use.peak, use.total) if use else (None,) * 4
        row = [format_bytes(reply.resident), _size(reply.proportional)]
        row += [_size(figure) for figure in figures] if on_gpus else []
        row += ["-", "runs a cell"] if reply.busy else [format_bytes(reply.in_all), _largest(reply)]
        rows.append((str(rank), *row))
    return rows


def silent_sentences(
    ranks: Iterable[int], said: Mapping[int, MemoryReply], dead: Collection[int]
) -> Iterator[str]:
    """Name ranks that were asked and have not replied."""
    silent = [rank for rank in ranks if rank not in said]
    if gone := [rank for rank in silent if rank in dead]:
        yield f"{name_ranks(gone).capitalize()} {'is' if len(gone) == 1 else 'are'} dead."
    if failed := [rank for rank in silent if rank not in dead]:
        its = "its" if len(failed) == 1 else "their"
        yield f"{name_ranks(failed).capitalize()} did not tell {its} memory; see the log."


def memory_sentences(said: Mapping[int, MemoryReply]) -> Iterator[str]:
    """Name ranks whose variables hold more than those of others, and the variable that does."""
    told = {rank: reply for rank, reply in said.items() if not reply.busy}
    if len(told) < 2:
        return
    usual = sorted(reply.in_all for reply in told.values())[(len(told) - 1) // 2]
    for rank, reply in sorted(told.items()):
        more = reply.in_all - usual
        if more < _SMALL or reply.in_all < _UNEVEN * usual:
            continue
        others = [other for number, other in told.items() if number != rank]
        excess = {one.name: one.nbytes - _median_of(one.name, others) for one in reply.held}
        name = max(excess, key=lambda name: excess[name], default="")
        cause = f", most of it in `{name}`" if name and excess[name] > more / 2 else ""
        yield (
            f"The variables of rank {rank} hold {format_bytes(more)} more than those "
            f"of the other ranks{cause}."
        )


def estimate_sentence(
    model: str, said: EstimateReply, ranks: Mapping[int, MemoryReply]
) -> list[str]:
    """Say how much memory a step takes, and which GPUs of `ranks` are too small."""
    parts = (
        ("parameters", said.parameters),
        ("gradients", said.gradients),
        ("optimizer", said.optimizer),
        ("activations", said.activations),
        ("other", said.other),
    )
    listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts if size)
    lines = [f"A step of `{model}` takes about {format_bytes(said.peak)} on each rank: {listed}."]
    if small := [r for r, now in ranks.items() if now.torch and now.torch.total < said.peak]:
        lines.append(f"This is more than the GPU of {name_ranks(small)} has.")
    return lines


def _largest(reply: MemoryReply) -> str:
    def write(name: str, nbytes: int, gradients: int) -> str:
        of_it = f" ({format_bytes(gradients)} gradients)" if gradients else ""
        return f"{name} {format_bytes(nbytes)}{of_it}"

    named = [write(one.name, one.nbytes, one.gradients) for one in reply.held[:_BIGGEST]]
    return ", ".join(named) or "-"


def _median_of(name: str, others: Sequence[MemoryReply]) -> int:
    sizes = [sum(one.nbytes for one in other.held if one.name == name) for other in others]
    return sorted(sizes)[(len(sizes) - 1) // 2]


def _size(nbytes: int | None) -> str:
    return "-" if nbytes is None else format_bytes(nbytes)


# -- cells that ran out of memory ---------------------------------------------------------------

_NAMES = ("OutOfMemoryError", "MemoryError", "_ArrayMemoryError")
"""torch's on a GPU, Python's and NumPy's; torch has none on the CPU."""
_ON_CPU = "can't allocate memory"
_ON_GPU = "CUDA out of memory"
_ASKED = re.compile(r"(?:allocate|Requested) (\d[\d.]*) ?(bytes|[KMGTP]iB)", re.IGNORECASE)


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
