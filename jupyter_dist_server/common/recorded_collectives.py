"""Reads the collectives that torch's flight recorder has recorded on one rank.

gloo and NCCL write the same format, as JSON or as a pickle; see `FlightRecorder` in torch's sources
(``torch/csrc/distributed/c10d``). gloo does not record messages (`send`, `recv`), and leaves the
state of an entry at ``scheduled``: `retired` says that it is done. NCCL does the same for the parts
of one batch (`batch_isend_irecv`); an entry ``coalesced`` behind them has their state.
"""

from __future__ import annotations

import itertools
import linecache
import re
from pathlib import PurePath

import msgspec
from msgspec import structs

from .protocol.ranks.evidence import CodePlace, Collective

_KEPT = 100
"""The number of finished ones that are returned: other ranks are at most that far behind."""
_MOST = 500
"""The number of all that are returned."""
_CELL = re.compile(r"<Cell (In\[\d+\])")
_OURS = "/jupyter_dist_server/(rank|common)/"
_COMPILED = r"(\?\?)?$|.*\.(c|cc|cpp|cxx|cuh?|h|hpp|o|S)$"
"""Files of C and C++, among the frames if the user has asked torch for them (``stacks="all"``)."""
_LIBRARY = re.compile(f"<|{_COMPILED}|.*(-packages/|/lib(64)?/python3[^/]*/|{_OURS})")
"""Files that are not the user's: of packages, of Python, ours, and code without a file."""
_LONGEST_SOURCE = 60
_BATCH = "coalesced"


class TorchFrame(msgspec.Struct, frozen=True):
    """A frame, with torch's names."""

    name: str
    filename: str
    line: int


class TorchEntry(msgspec.Struct, frozen=True):
    """A collective or a message, with torch's names."""

    process_group: tuple[str, str]
    collective_seq_id: int
    p2p_seq_id: int
    profiling_name: str
    time_created_ns: int
    input_sizes: list[list[int]]
    input_dtypes: list[str]
    output_sizes: list[list[int]] = []
    output_dtypes: list[str] = []
    state: str = "scheduled"
    retired: bool = False
    is_p2p: bool = False
    frames: list[TorchFrame] = []


class TorchGroup(msgspec.Struct, frozen=True):
    """A process group, with torch's names."""

    desc: str = ""
    ranks: str = ""
    """Such as ``[0, 1]``; empty for gloo, which does not know them."""


class TorchDump(msgspec.Struct, frozen=True):
    """What a recorder tells."""

    entries: list[TorchEntry] = []
    pg_config: dict[str, TorchGroup] = {}


def read_json(text: bytes) -> TorchDump:
    """Read a dump in the format ``fr_trace_json``; raises `ValueError` if it is none."""
    return msgspec.json.decode(text, type=TorchDump)


def read_unpickled(dump: object) -> TorchDump:
    """Read a dump that was pickled; raises `ValueError` if it is none."""
    return msgspec.convert(dump, TorchDump, str_keys=True)


def collectives_of(dump: TorchDump, since: float = 0.0) -> list[Collective]:
    """Return what a rank has begun since some time, in that order: the last, and all undone.

    The last of each group is always included: other ranks may wait in the one before.
    """
    recorded = [entry for entry in dump.entries if entry.time_created_ns >= since * 1e9]
    entries = _with_states_of_batches(recorded)
    last = {
        (entry.process_group[0], _backend(entry), entry.is_p2p): place
        for place, entry in enumerate(entries)
    }
    first_kept = len(entries) - _KEPT
    kept = [p for p, entry in enumerate(entries) if p >= first_kept or is_undone(entry)]
    return [_read(entries[place]) for place in sorted({*kept[-_MOST:], *last.values()})]


def _with_states_of_batches(entries: list[TorchEntry]) -> list[TorchEntry]:
    """Give the parts of a batch the batch's state, and drop its end."""
    batches = {_counts(entry): entry for entry in entries if _op(entry) == _BATCH}
    if not batches:
        return entries
    with_parts = {_counts(entry) for entry in entries if _op(entry) != _BATCH}
    found = []
    for entry in entries:
        batch = batches.get(_counts(entry))
        if batch is None or _counts(batch) not in with_parts:
            found.append(entry)
        elif entry is not batch:
            found.append(structs.replace(entry, state=batch.state, retired=batch.retired))
    return found


def _counts(entry: TorchEntry) -> tuple[str, str, int, int]:
    """Return what all entries of a batch have in common, as it counts as one."""
    group = entry.process_group[0]
    return group, _backend(entry), entry.collective_seq_id, entry.p2p_seq_id


def is_undone(entry: TorchEntry) -> bool:
    """Tell whether a rank may wait in it."""
    return not (entry.retired or entry.state == "completed")


def _backend(entry: TorchEntry) -> str:
    return entry.profiling_name.rpartition(":")[0]


def _op(entry: TorchEntry) -> str:
    return entry.profiling_name.rpartition(":")[2]


def _read(entry: TorchEntry) -> Collective:
    takes = list(zip(entry.input_sizes, entry.input_dtypes, strict=False))
    if not takes:  # of a broadcast, gloo tells only what comes out
        takes = list(zip(entry.output_sizes, entry.output_dtypes, strict=False))
    return Collective(
        group=entry.process_group[0],
        number=entry.p2p_seq_id if entry.is_p2p else entry.collective_seq_id,
        op=_op(entry),
        tensors=[write_tensor(sizes, kind) for sizes, kind in takes],
        begun=entry.time_created_ns / 1e9,
        done=not is_undone(entry),
        completed=entry.state == "completed",
        is_message=entry.is_p2p,
        backend=_backend(entry),
        place=users_place(entry.frames),
    )


def write_tensor(sizes: list[int], kind: str) -> str:
    """Return ``2 × 3 × float32``."""
    names = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16"}
    names |= {"Int": "int32", "Long": "int64", "Short": "int16", "Char": "int8", "Byte": "uint8"}
    return " × ".join([*map(str, sizes), names.get(kind, kind.lower())])


def users_place(frames: list[TorchFrame]) -> CodePlace | None:
    """Return the innermost line of a cell; without one, the innermost that is no library's.

    The cell that runs a script, or a function that was sent, does not count.
    """
    above = itertools.takewhile(lambda frame: not is_below_users_code(frame.filename), frames)
    own = [frame for frame in above if is_own(frame.filename)]
    cells = [frame for frame in own if is_cell(frame.filename)]
    for frame in [*cells, *own]:
        return place_at(frame.filename, frame.line)
    return None


def place_at(filename: str, line: int) -> CodePlace:
    """Return a line as it is named to users; its source is known where it was run."""
    cell = _CELL.match(filename)
    source = " ".join(linecache.getline(filename, line).split())
    if len(source) > _LONGEST_SOURCE:
        source = f"{source[:_LONGEST_SOURCE].rstrip()}…"
    return CodePlace(cell[1] if cell else PurePath(filename).name, line, source)


def is_cell(filename: str) -> bool:
    """Tell whether it is code of a cell."""
    return _CELL.match(filename) is not None


def is_own(filename: str) -> bool:
    """Tell whether it is the user's code: a cell, or a file of no library."""
    return is_cell(filename) or not _LIBRARY.match(filename)


def is_below_users_code(filename: str) -> bool:
    """Tell whether it is our module that runs a script, or a function that was sent."""
    return filename.endswith("/jupyter_dist_server/rank/users_code.py")
