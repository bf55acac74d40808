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
from ...common.protocol.ranks.evidence import Evidence, Group, RankEvidence
from ...common.recorded_collectives import TorchDump, collectives_of, read_unpickled

_NAME = re.compile(r"(.*?)(\d+)")


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
    return {rank: _evidence(rank, dumps[rank]) for rank in sorted(dumps)}


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


def _evidence(rank: int, dump: TorchDump) -> RankEvidence:
    collectives = collectives_of(dump)
    groups = {
        name: Group(ranks, group.desc if group.desc not in ("undefined", "default_pg") else "")
        for name, group in dump.pg_config.items()
        if rank in (ranks := _ranks(group.ranks))
    }
    last = collectives[-1] if collectives else None
    why = f"the dump ends with {last.op} #{last.number}" if last else "the dump is empty"
    return RankEvidence(condition="silent", why=why, groups=groups, collectives=collectives)


def _ranks(text: str) -> list[int]:
    try:
        return sorted(map(int, json.loads(text))) if text else []
    except (TypeError, ValueError):
        return []
