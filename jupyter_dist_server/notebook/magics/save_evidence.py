"""What ``%dist_why --save`` writes: the evidence for a bug report, or dumps that torch reads."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ...client.pool_client import PoolClient
from ...common.errors import DistError
from ...common.patience import patience
from ...common.protocol.ranks.evidence import DumpRequest, Evidence
from ...common.rank_specs import name_ranks


async def save_evidence(client: PoolClient, evidence: Evidence, name: str) -> str:
    """Write the evidence to a file, or to a folder with the dumps of torch's recorders.

    Parameters
    ----------
    client : PoolClient
    evidence : dict of int to RankEvidence
    name : str
        Of a file if it ends with ``.json``. Otherwise of a folder: ``rank_0`` and so on are in the
        form that torch's ``torchfrtrace`` reads.

    Returns
    -------
    str
        What was written, in one sentence.

    Raises
    ------
    DistError
        If it cannot be written, or torch has recorded nothing.
    """
    path = Path(name).expanduser()
    try:
        if path.suffix == ".json":
            path.write_bytes(msgspec.json.format(msgspec.json.encode(evidence)))
            return f"{name} has what the ranks tell."
        return await _save_dumps(client, path, name)
    except OSError as error:
        raise DistError(
            "file_unwritable",
            f"{name} cannot be written: {error.strerror}.",
            "Choose an existing folder with write permission.",
        ) from error


async def _save_dumps(client: PoolClient, folder: Path, name: str) -> str:
    asked = DumpRequest()
    said = await client.ask(asked.kind, asked.content, timeout=patience.node)
    dumps = {rank: bytes(one["buffers"][0]) for rank, one in said.items() if one["buffers"]}
    if not dumps:
        raise DistError("no_dumps", "No rank has a dump: this torch does not record collectives.")
    folder.mkdir(exist_ok=True)
    for rank, dump in dumps.items():
        (folder / f"rank_{rank}").write_bytes(dump)
    missing = sorted(set(range(client.world_size)) - dumps.keys())
    part, option = "", ""
    if missing:
        part = f" without {name_ranks(missing)}, which did not answer"
        option = " --allow-incomplete-ranks"
    return f"{name} has torch's dumps{part}: torchfrtrace {name} --prefix rank_{option}"
