"""Starting a pool's agent on this machine; it starts those of other nodes, see `agent.nodes`."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common import ask_from_outside
from ...common.pool_folder import AGENT_SOCKET, ORDERS, new_key, write_private
from ...common.processes.process_ref import ProcessRef, boot_id
from ...common.protocol.agents.attachment import Owner
from ...common.protocol.agents.zygote_messages import AgentOrders
from ...common.protocol.node_addresses import new_curve_keys
from ...common.protocol.pool_file import CONFIG, PlacedRank, PoolFile
from ...common.protocol.pool_record import PoolRecord
from ...placement.allocate_gpus import Allocator, Tell
from ...placement.new_pool_record import Allocation
from ...placement.ranks_to_gpus import Placement
from ...placement.ranks_to_nodes import Spread
from ...placement.requests.request import PoolRequest
from .agent_process import AgentProcess
from .zygote_registry import ZygoteRegistry

_NOT_FOR_RANKS = (
    "JPY_PARENT_PID",  # ipykernel would end the rank as soon as its parent is not this process
    "JPY_INTERRUPT_EVENT",
    ask_from_outside.FOLDER,  # ranks answer by themselves, and an agent must have no thread
)
_PARKABLE = {"NCCL_NVLS_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"}
"""The driver cannot park what NCCL allocates otherwise: https://github.com/NVIDIA/nccl/issues/2337
and https://github.com/NVIDIA/nccl/issues/2349."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(eq=False)
class Launch:
    """Gets GPUs for one pool, unless they are `granted` already, and starts its agent."""

    _request: PoolRequest
    _owner: Owner
    _zygotes: ZygoteRegistry
    _allocator: Allocator
    _granted: Allocation | None
    _spread: Spread | None
    _cancelled: bool = False

    def begin(self, tell: Tell) -> None:
        """Begin to get the GPUs; `tell` is called with the reason if it must wait."""
        self._allocating = asyncio.create_task(self._allocate(tell))

    async def _allocate(self, tell: Tell) -> Allocation:
        return self._granted or await self._allocator.in_line(tell)

    def cancel(self) -> None:
        """Stop getting GPUs, and give back those that there are."""
        self._cancelled = True
        self._allocating.cancel()

    async def allocation(self) -> Allocation | None:
        """Return the GPUs once they are there, for the caller to close; `None` if cancelled."""
        try:
            allocation = await self._allocating
        except asyncio.CancelledError:
            if self._granted:
                self._granted.close()
            if not self._cancelled:  # the caller was cancelled
                raise
            return None
        if self._cancelled:
            allocation.close()
            return None
        return allocation

    def fields(self, allocation: Allocation) -> dict[str, Any]:
        """Return what the pool's record says once its GPUs are known."""
        fields = allocation.fields
        return self._spread.fields(fields) if self._spread else fields

    async def __call__(
        self, folder: Path, record: PoolRecord, timeout: float, allocation: Allocation
    ) -> AgentProcess:
        """Start the agent, which then holds the GPUs' lease; its socket listens on return."""
        given = self._request.base_env
        base = dict(os.environ) if given is None else given
        environment = agent_environment(base, self._request.added_env, allocation.placement)
        cwd = self._request.cwd or os.getcwd()
        variables = {os.fsencode(key): os.fsencode(value) for key, value in environment.items()}
        write_private(folder / CONFIG, self._config(base, cwd, record, timeout, allocation))
        write_private(folder / ORDERS, AgentOrders(variables, os.fsencode(cwd)))
        with socket.socket(socket.AF_UNIX) as listener, open(folder / "agent.log", "wb") as log:
            # Bound here and handed over, so that it can be connected to at once.
            listener.bind(str(folder / AGENT_SOCKET))
            listener.listen(64)
            passed = [listener.fileno(), log.fileno(), *allocation.descriptors]
            return await self._zygotes.start_agent(record.python, environment, folder, cwd, passed)

    def _config(
        self,
        base: dict[str, str],
        cwd: str,
        record: PoolRecord,
        timeout: float,
        allocation: Allocation,
    ) -> PoolFile:
        parking = {} if record.park_after is None else _PARKABLE
        given = base | parking | self._request.env
        here = len(allocation.placement.gpus)
        nodes = self._spread.pool_nodes(here) if self._spread else []

        def mask(rank: int) -> str | None:
            node = next((node for node in nodes if rank in node.ranks), None)
            if self._spread and node and node is not nodes[0]:
                return self._spread.mask(node, rank)
            return allocation.placement.mask(node.ranks.index(rank) if node else rank)

        return PoolFile(
            id=record.id,
            key=new_key(),
            world_size=record.world_size,
            backend=record.backend,
            start_method=record.start_method,
            timeout=timeout,
            cwd=os.fsencode(cwd),
            sys_path=list(map(os.fsencode, self._request.sys_path)),
            thread_limits={name: given[name] for name in _THREADS if name in given},
            owner=ProcessRef.of(os.getpid()),
            grace=self._owner.grace,
            ranks=[PlacedRank(rank.device, rank.gpu, mask(rank.rank)) for rank in record.ranks],
            boot=boot_id(),
            host=record.host,
            owner_kind=self._owner.kind,
            record=record,
            engine=self._spread.engine if self._spread else "",
            node_python=self._request.node_python,
            nodes=nodes,
            keys=new_curve_keys() if nodes else None,
            visible=(base | self._request.added_env).get("CUDA_VISIBLE_DEVICES"),
            force=self._request.force,
        )


def agent_environment(
    base: dict[str, str], extra: dict[str, str], placement: Placement
) -> dict[str, str]:
    """Return the notebook kernel's environment with `extra`, as the agent and all ranks need it."""
    env = {name: value for name, value in base.items() if name not in _NOT_FOR_RANKS}
    env |= extra
    # OpenBLAS would start threads as numpy is imported, and a process with threads must not fork.
    # It is also torchrun's default for ranks; after the fork they get the user's limits,
    # which torch obeys then. OpenBLAS has read 1 by then.
    env |= dict.fromkeys(_THREADS, "1")
    # The agent must not open CUDA: a forked child could not use it any more.
    env["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    # gloo looks the host name up otherwise, and may listen on an outer interface.
    # So may NCCL, which takes the loopback only if it is named.
    for library in ("GLOO", "NCCL"):
        env.setdefault(f"{library}_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    if placement.used:
        env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        masks = (placement.mask(rank) for rank in range(len(placement.gpus)))
        env["CUDA_VISIBLE_DEVICES"] = next(filter(None, masks))  # the agent itself uses none
    return env
