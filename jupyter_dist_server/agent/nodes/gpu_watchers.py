"""The clients that watch GPUs of other nodes, and the last news of these."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...common.protocol.agents.agent_messages import NodeGpus, WatchGpus
from ...common.protocol.sampler_messages import InventoryNews, SampleNews, SamplerSettings
from ..control_socket import Client


class GpuWatchers:
    """Passes news of samplers to the clients that have asked for it."""

    def __init__(self, tell: Callable[[Client, NodeGpus], None]) -> None:
        self._tell = tell
        self._wanted: dict[Client, WatchGpus] = {}
        self._last: dict[tuple[str, type], NodeGpus] = {}
        """By node and kind; a later client gets what is said only once."""

    def note(self, client: Client, wanted: WatchGpus) -> None:
        """Note what a client wants from now on, and tell it what is known."""
        self._wanted[client] = wanted
        for node in wanted.nodes:
            for told in [told for (name, _), told in self._last.items() if name == node]:
                self._tell(client, told)

    def remove(self, client: Client) -> None:
        """Forget a client."""
        self._wanted.pop(client, None)

    def settings(self, node: str) -> SamplerSettings | None:
        """Return how to sample a node for all clients; `None` if none asks."""
        asked = [
            one.settings for one in self._wanted.values() if one.settings and node in one.nodes
        ]
        if not asked:
            self.forget(node)
            return None
        return msgspec.structs.replace(
            asked[0],
            interval=min(one.interval for one in asked),
            pcie=any(one.pcie for one in asked),
        )

    def forget(self, node: str) -> None:
        """Forget the news of a node: its sampler has ended."""
        self._last = {key: told for key, told in self._last.items() if key[0] != node}

    def tell(self, told: NodeGpus) -> None:
        """Pass on a sampler's news; slow clients get no samples, which are soon old."""
        is_sample = isinstance(told.news, SampleNews)
        if isinstance(told.news, InventoryNews):
            self.forget(told.node)  # the sampler sends everything again
        if is_sample:
            self._last.pop((told.node, type(None)), None)  # what was wrong
        else:
            self._last[told.node, type(told.news)] = told
        for client, wanted in self._wanted.items():
            is_behind = is_sample and client.transport.get_write_buffer_size()
            if wanted.settings and told.node in wanted.nodes and not is_behind:
                self._tell(client, told)
