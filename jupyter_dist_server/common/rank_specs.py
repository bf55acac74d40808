"""How a choice of ranks is written (``[0,2]``, ``0-2``, ``::2``) and printed (``0-2,5``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .errors import DistError

MAX_RANKS = 1024


def parse_ranks(text: str, world_size: int) -> list[int]:
    """Read a choice of ranks, and return it in ascending order, each rank once.

    It has comma-separated items, with or without square brackets. An item is a rank (``3``;
    ``-1`` is the last), an inclusive range (``0-2``), or a Python slice (``0:2``, ``::2``).
    Raises `DistError` if an item cannot be read, or names a rank that the pool does not have.
    """
    chosen: set[int] = set()
    items = [item.strip() for item in text.strip().removeprefix("[").removesuffix("]").split(",")]
    for item in items:
        try:
            chosen.update(_read_item(item, world_size))
        except ValueError:
            raise DistError(
                "bad_ranks",
                f"“{text.strip()}” is not a valid choice of ranks.",
                "Write %%rank [0,2], %%rank 0-2 or %%rank ::2.",
                field="ranks",
            ) from None
    check_ranks(chosen, world_size)
    if not chosen:
        raise DistError("bad_ranks", f"“{text.strip()}” chooses no rank.", field="ranks")
    return sorted(chosen)


def _read_item(item: str, world_size: int) -> Iterable[int]:
    if ":" in item:
        parts = [int(part) if part.strip() else None for part in item.split(":")]
        if len(parts) > 3:
            raise ValueError(item)
        return range(world_size)[slice(*parts)]
    first, dash, last = item.partition("-")
    if dash and first:
        if int(last) < int(first):
            raise ValueError(item)
        # A rank that is not there is an error anyway: one of them is enough to say so.
        return range(int(first), min(int(last), max(int(first), world_size)) + 1)
    rank = int(item)
    return [rank + world_size if -world_size <= rank < 0 else rank]


def check_ranks(ranks: Iterable[int], world_size: int) -> None:
    """Raise `DistError` if the pool lacks one of `ranks`."""
    missing = sorted(set(ranks) - set(range(world_size)))
    if missing:
        one = len(missing) == 1
        names = f"is no rank {missing[0]}" if one else f"are no ranks {format_ranks(missing)}"
        raise DistError(
            "unknown_rank",
            f"There {names}: the pool has {world_size} "
            f"{'rank' if world_size == 1 else 'ranks'} ({format_ranks(range(world_size))}).",
            field="ranks",
        )


def format_ranks(ranks: Iterable[int]) -> str:
    """Write ranks compactly: ``[0, 1, 2, 5]`` becomes ``"0-2,5"``."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and runs[-1][-1] == rank - 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    return ",".join("-".join(map(str, run)) for run in runs)


def name_ranks(ranks: Sequence[int]) -> str:
    """Return ``rank 1`` or ``ranks 0-2``."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {format_ranks(ranks)}"
