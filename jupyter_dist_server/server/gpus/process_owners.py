"""Who owns the processes on GPUs: a rank, a notebook's kernel, or another process."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from ...common.protocol.pool_record import PoolRecord
from ...common.protocol.sampler_messages import GpuProcess
from ...pools.reports.rank_usage import Usage


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """The owner of a process."""

    kind: str
    """``rank``, ``kernel``, ``mine``, ``other`` (of another user), or ``unknown`` if the process
    cannot be seen from here."""
    pool: str | None = None
    rank: int | None = None
    kernel_id: str | None = None
    name: str | None = None
    """The kernel's notebook."""


class OwnedProcess(GpuProcess, frozen=True, kw_only=True):
    """A process on a GPU with its owner."""

    who: Owner


def with_owners(
    processes: Mapping[str, list[GpuProcess]],
    pools: Iterable[PoolRecord],
    usage: Mapping[str, list[Usage | None]],
    kernels: Mapping[int, Mapping[str, str]],
    user: str,
    elsewhere: Collection[str] = (),
) -> dict[str, list[OwnedProcess]]:
    """Add the owner to each process, by the UUID of the GPU.

    A rank is known by its pid and its GPU together: in a container, NVML's pids are those of the
    host, and may be those of other processes here. `kernels` are this server's by pid, `elsewhere`
    the GPUs of other machines, whose pids mean nothing here.
    """
    ranks = _ranks(pools, usage)

    def who(uuid: str, row: GpuProcess) -> Owner:
        if rank := ranks.get((uuid, row.pid)):
            return rank
        if row.user is None:
            return Owner("unknown")
        if uuid not in elsewhere and (kernel := kernels.get(row.pid)):
            return Owner("kernel", kernel_id=kernel["kernel_id"], name=kernel["name"])
        return Owner("mine" if row.user == user else "other")

    return {
        uuid: [OwnedProcess(**msgspec.structs.asdict(row), who=who(uuid, row)) for row in rows]
        for uuid, rows in processes.items()
    }


def _ranks(
    pools: Iterable[PoolRecord], usage: Mapping[str, list[Usage | None]]
) -> dict[tuple[str, int], Owner]:
    owners: dict[tuple[str, int], Owner] = {}
    for pool in pools:
        said = usage.get(pool.id, [])
        for rank in pool.ranks:
            own = said[rank.rank] if rank.rank < len(said) else None
            gpus = {own.gpu_uuid} if own and own.gpu_uuid else set()
            gpus |= {rank.gpu.uuid} if rank.gpu else set()
            pids = {rank.pid, own.host_pid if own else None} - {None}
            who = Owner("rank", pool=pool.id, rank=rank.rank)
            owners |= {(gpu, pid): who for gpu in gpus for pid in pids if pid is not None}
    return owners
