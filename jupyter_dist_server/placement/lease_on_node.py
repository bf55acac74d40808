"""A child of the agent on another node: it chooses and leases the GPUs of the ranks there.

It follows the same rules as the pool's first node, with the GPUs that the engine has given to the
agent.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time

import msgspec

from ..common.errors import DistError
from ..common.patience import patience
from ..common.protocol.failure_reason import Reason
from ..common.protocol.node_messages import (
    NodeAllocation,
    NodeRequest,
    read_node_request,
)
from ..common.protocol.pool_file import PlacedRank
from ..jobs.leases.lease import holders
from .allocate_gpus import Allocator
from .new_pool_record import Allocation, gpu_reference
from .ranks_to_gpus import GpusTaken
from .requests.request import PoolRequest


def main() -> None:
    """Read the request, and send the answer with the descriptors of the lease."""
    with socket.socket(fileno=int(sys.argv[1])) as agent:
        try:
            allocation = asyncio.run(_allocate(read_node_request(sys.argv[2].encode())))
        except DistError as error:
            answer = NodeAllocation(failure=Reason(error.code, error.message, error.hint))
            agent.sendall(msgspec.json.encode(answer))
            return
        answer = NodeAllocation(_placed(allocation))
        socket.send_fds(agent, [msgspec.json.encode(answer)], allocation.descriptors)


async def _allocate(asked: NodeRequest) -> Allocation:
    request = PoolRequest(
        num_ranks=asked.ranks,
        map=dict(enumerate(asked.gpus)) or None,
        oversubscribe=asked.record.leases == "shared",
        one_rank_per_gpu="nccl" in asked.record.backend,
        force=asked.force,
        time_limit=asked.record.time_limit,
    )
    allocator = Allocator(request, asked.record)
    # An agent of the same pool that was cut off ends its ranks once it has heard nothing for long.
    until = time.monotonic() + 2 * patience.node
    while True:
        try:
            return await allocator.now()
        except GpusTaken:
            leases = await asyncio.to_thread(holders, allocator.inventory)
            is_ours = any(lease.pool == asked.record.id for lease in leases.values())
            if not is_ours or time.monotonic() > until:
                raise
        await asyncio.sleep(0.5)


def _placed(allocation: Allocation) -> list[PlacedRank]:
    placement = allocation.placement
    return [
        PlacedRank(placement.device(rank), gpu_reference(gpu), placement.mask(rank))
        for rank, gpu in enumerate(placement.gpus)
        if gpu
    ]
