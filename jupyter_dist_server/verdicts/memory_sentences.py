"""What uses the memory of ranks, and what a training step would take, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..common.protocol.ranks.memory_messages import EstimateReply, MemoryReply
from ..common.rank_specs import name_ranks
from ..common.units import format_bytes

_BIGGEST = 3
"""Variables that are named for each rank."""
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
