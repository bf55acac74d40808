"""The GPUs of a pool's other nodes, read once by the samplers there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..common.background_tasks import any_of
from ..common.patience import patience
from ..common.protocol.agents.agent_messages import NodeGpus, WatchGpus
from ..common.protocol.sampler_messages import News, ProcessesNews, SampleNews, SamplerSettings
from ..gpus.cuda_visible_devices import MASK, narrow
from ..gpus.gpu_state import GpuState, state_of
from ..gpus.inventory import Inventory
from .agent_link import AgentLink


@dataclass
class _Node:
    news: list[News] = field(default_factory=list)
    visible: str | None = None
    trouble: str = ""

    @property
    def is_enough(self) -> bool:
        state = state_of(self.news)
        kinds = set(map(type, self.news))
        is_whole = {SampleNews, ProcessesNews} <= kinds or (state and not state.inventory.gpus)
        return bool(self.trouble or is_whole)

    def state(self, node: str) -> GpuState:
        if not (state := state_of(self.news)):
            silent = f"Node {node} did not report its GPUs within {patience.node:.0f} s."
            return GpuState(Inventory(reason=self.trouble or silent))
        found = narrow(state.inventory, {} if self.visible is None else {MASK: self.visible})
        gpus = tuple(replace(gpu, node=node) for gpu in found.gpus)
        return replace(state, inventory=replace(found, gpus=gpus))


async def look_at_nodes(agent: AgentLink, nodes: Sequence[str]) -> dict[str, GpuState]:
    """Have other nodes read NVML, and return their GPUs; nothing else watches GPUs by `agent`."""
    if not nodes:
        return {}
    heard = {node: _Node() for node in nodes}
    complete = asyncio.Event()

    def hear(told: NodeGpus) -> None:
        if told.node in heard:
            one = heard[told.node]
            one.visible, one.trouble = told.visible, told.trouble
            one.news += [told.news] if told.news else []
        if all(one.is_enough for one in heard.values()):
            complete.set()

    agent.on_gpus = hear
    agent.send(WatchGpus(SamplerSettings(), list(nodes)))
    try:
        await any_of(complete, agent.closed, within=patience.node)
    finally:
        agent.send(WatchGpus(None))
        agent.on_gpus = lambda _: None
    return {node: one.state(node) for node, one in heard.items()}
