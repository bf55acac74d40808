"""The GPUs of other nodes, sampled by the agents of pools while a client displays them."""

from __future__ import annotations

from ...common.protocol.agents.agent_messages import NodeGpus, WatchGpus
from ...common.protocol.pool_record import PoolState
from ...common.protocol.sampler_messages import SamplerSettings
from ...gpus.telemetry import Telemetry
from ..pool import Pool
from ..pool_manager import PoolManager


class OtherNodes:
    """Has each node sampled by one of the pools that run there, for the telemetry."""

    def __init__(self, manager: PoolManager, telemetry: Telemetry) -> None:
        self._manager = manager
        self._telemetry = telemetry
        self._settings: SamplerSettings | None = None
        self._stop = [
            manager.listen(self._on_change, lambda _: None),
            telemetry.follow_settings(self._on_settings),
        ]

    def close(self) -> None:
        """Stop sampling; a server that gets a second signal closes twice."""
        while self._stop:
            self._stop.pop()()

    def _on_settings(self, settings: SamplerSettings | None) -> None:
        self._settings = settings
        self._ask()

    def _on_change(self, pool: Pool) -> None:
        if pool.record.other_nodes:
            self._ask()

    def _ask(self) -> None:
        """Ask for each node once, however many pools run there."""
        sampled: list[str] = []
        for pool in self._manager.live():
            if pool.record.state in (PoolState.RUNNING, PoolState.CONFIGURING):
                new = [node for node in pool.record.other_nodes if node not in sampled]
                sampled += new
                settings = self._settings if new else None
                pool.agent.watch_gpus(WatchGpus(settings, new if settings else []), self._hear)
        self._telemetry.keep_nodes(sampled)

    def _hear(self, told: NodeGpus) -> None:
        if told.news:
            self._telemetry.hear(told.node, told.news, told.visible)
        else:
            self._telemetry.lose_node(told.node, told.trouble)
