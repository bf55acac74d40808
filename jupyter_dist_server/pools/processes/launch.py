"""Starting a pool's agent on this machine; it starts those of other nodes, see `agent.nodes`."""

from __future__ import annotations

import asyncio
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from ...common.network.curve import new_curve_keys
from ...common.pool_folder import AGENT_SOCKET, ORDERS, new_key, write_private
from ...common.processes.process_ref import ProcessRef, boot_id
from ...common.protocol.agents.attachment import Owner
from ...common.protocol.agents.zygote_messages import AgentOrders
from ...common.protocol.pool_file import CONFIG, PlacedRank, PoolFile
from ...common.protocol.pool_record import PoolRecord
from ...placement.agent_environment import agent_environment, thread_limits
from ...placement.allocate_gpus import Allocator, Tell
from ...placement.new_pool_record import Allocation, AssignedFields
from ...placement.ranks_to_nodes import Spread
from ...placement.requests.request import PoolRequest
from .agent_process import AgentProcess
from .zygote_registry import ZygoteRegistry


@dataclass(eq=False)
class Launch:
    """How to get GPUs for one pool, and start its agent.

    `granted` are GPUs that it has already, and `spread` are the nodes, if there are several.
    """

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
        """Return the GPUs once they are there, for the caller to close; `None` if cancelled.

        Raises `DistError` if there are none in time.
        """
        try:
            allocation = await self._allocating
        except asyncio.CancelledError:
            if self._granted:
                self._granted.close()
            if not self._cancelled:  # it is the caller who is cancelled
                raise
            return None
        if self._cancelled:
            allocation.close()
            return None
        return allocation

    def fields(self, allocation: Allocation) -> AssignedFields:
        """Return what the pool's record says once its GPUs are known."""
        fields = allocation.fields
        return self._spread.fields(fields) if self._spread else fields

    async def __call__(
        self, folder: Path, record: PoolRecord, timeout: float, allocation: Allocation
    ) -> AgentProcess:
        """Start the agent, which then holds the GPUs' lease; its socket listens on return.

        Raises `DistError` if the interpreter cannot be started, or the folder cannot be written,
        and `ZygoteEnded` if the interpreter ended while it imported torch.
        """
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
            thread_limits=thread_limits(base, self._request.env),
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
