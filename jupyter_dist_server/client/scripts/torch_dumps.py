"""Evidence from dumps of torch's flight recorder: of its watchdog, or of `%dist_why --save`.

See https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html.
"""

from __future__ import annotations

import json
import pickle
import re
from io import BytesIO
from pathlib import Path
from typing import Any

from ...common.errors import DistError
from ...common.protocol.ranks.collectives import WAITING_MODULES
from ...common.protocol.ranks.evidence import (
    CodePlace,
    Collective,
    Evidence,
    Frame,
    Group,
    RankEvidence,
)
from ...common.recorded_collectives import TorchDump, collectives_of, read_unpickled

_NAME = re.compile(r"(.*?)(\d+)")
_UNSEEN = "a dump does not tell"


def read_dumps(folder: Path) -> Evidence:
    """Return what the dumps of a folder tell, whose names end with the numbers of ranks.

    Raises `DistError` if there are none, or one is none, or some are of another job.
    """
    try:
        files = [
            (file, found) for file in folder.iterdir() if (found := _NAME.fullmatch(file.name))
        ]
    except OSError as error:
        raise DistError("bad_dumps", f"{folder} cannot be read: {error.strerror}.") from None
    prefixes = {found[1] for _, found in files}
    if len(prefixes) != 1:
        many = f"There are dumps of several names in {folder}: {', '.join(sorted(prefixes))}."
        none = f"There are no dumps in {folder}."
        hint = "It must have one file for each rank, such as rank_0 and rank_1, and no others."
        raise DistError("bad_dumps", many if prefixes else none, hint)
    dumps = {int(found[2]): _read(file) for file, found in files}
    return {rank: _evidence(dumps[rank]) for rank in sorted(dumps)}


class _Plain(pickle.Unpickler):
    """Reads lists, dictionaries and so on: a dump needs no more, and other files may run code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it contains {module}.{name}")


def _read(file: Path) -> TorchDump:
    try:
        return read_unpickled(_Plain(BytesIO(file.read_bytes())).load())
    except OSError as error:
        raise DistError("bad_dumps", f"{file} cannot be read: {error.strerror}.") from None
    except Exception as error:  # of a file of any content
        raise DistError("bad_dumps", f"{file} is no dump of torch: {error}.") from None


def _evidence(dump: TorchDump) -> RankEvidence:
    collectives = collectives_of(dump)
    groups = {
        name: Group(ranks, group.desc if group.desc not in ("undefined", "default_pg") else "")
        for name, group in dump.pg_config.items()
        if (ranks := _ranks(group.ranks))
    }
    first = next((one for one in collectives if not one.done), None)
    if first is None:
        return RankEvidence(condition="silent", why=_UNSEEN, groups=groups, collectives=collectives)
    return RankEvidence(stack=[_waits_in(first)], groups=groups, collectives=collectives)


def _waits_in(first: Collective) -> Frame:
    """Return the call in which a rank is: the dump was written because it waits."""
    place = first.place or CodePlace("", 0)
    return Frame(WAITING_MODULES[0], first.op, place, own=first.place is not None)


def _ranks(text: str) -> list[int]:
    try:
        return sorted(map(int, json.loads(text))) if text else []
    except (TypeError, ValueError):
        return []
