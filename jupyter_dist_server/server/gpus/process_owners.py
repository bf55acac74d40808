"""Who owns the processes on GPUs: a rank, a notebook's kernel, or another process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...common.protocol.records import PoolRecord
from ...pools.usage import Usage

Row = dict[str, Any]
"""A process as the sampler tells it: ``{pid, user, command, memory, sm, start_time}``."""


def with_owners(
    processes: Mapping[str, list[Row]],
    pools: Iterable[PoolRecord],
    usage: Mapping[str, list[Usage | None]],
    kernels: Mapping[int, Row],
    user: str,
) -> dict[str, list[Row]]:
    """Add ``who`` to each process.

    A rank is known by its pid and its GPU together: in a container NVML's pids are those of the
    host, and such a number may be some other process's here.

    Parameters
    ----------
    processes : mapping
        By the UUID of the GPU.
    pools : iterable of PoolRecord
        Whose ranks may be among them.
    usage : mapping
        What ranks say of themselves, see `RankUsage.latest`.
    kernels : mapping
        ``{kernel_id, name}`` of notebook kernels by pid.
    user : str
        Who we are.

    Returns
    -------
    dict
        `processes`, each row with ``who``: ``{kind: "rank", pool, rank}``,
        ``{kind: "kernel", kernel_id, name}``, ``{kind: "mine"}``, ``{kind: "other"}`` for another
        user's, ``{kind: "unknown"}`` for a process that cannot be seen from here.
    """
    ranks = _ranks(pools, usage)

    def who(uuid: str, row: Row) -> Row:
        if rank := ranks.get((uuid, row["pid"])):
            return rank
        if row["user"] is None:
            return {"kind": "unknown"}
        if kernel := kernels.get(row["pid"]):
            return {"kind": "kernel", **kernel}
        return {"kind": "mine" if row["user"] == user else "other"}

    return {
        uuid: [row | {"who": who(uuid, row)} for row in rows] for uuid, rows in processes.items()
    }


def _ranks(
    pools: Iterable[PoolRecord], usage: Mapping[str, list[Usage | None]]
) -> dict[tuple[str, int], Row]:
    owners: dict[tuple[str, int], Row] = {}
    for pool in pools:
        said = usage.get(pool.id, [])
        for rank in pool.ranks:
            own = said[rank.rank] if rank.rank < len(said) else None
            gpus = {own.gpu_uuid} if own and own.gpu_uuid else set()
            gpus |= {rank.gpu.uuid} if rank.gpu else set()
            pids = {rank.pid, own.host_pid if own else None} - {None}
            who = {"kind": "rank", "pool": pool.id, "rank": rank.rank}
            owners |= {(gpu, pid): who for gpu in gpus for pid in pids if pid is not None}
    return owners
