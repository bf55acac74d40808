"""Who wants to know of the GPUs of other nodes, and what was last said of these."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...common.protocol.agents.agent_messages import NodeGpus, WatchGpus
from ...common.protocol.sampler_messages import InventoryNews, SampleNews, SamplerSettings
from ..control_socket import Client


class GpuWatchers:
    """Passes what samplers say to those clients that have asked for it.

    Parameters
    ----------
    tell : callable
        Sends news to a client.
    """

    def __init__(self, tell: Callable[[Client, NodeGpus], None]) -> None:
        self._tell = tell
        self._wanted: dict[Client, WatchGpus] = {}
        self._last: dict[tuple[str, type], NodeGpus] = {}
        """By node and kind: what is said once only, for who comes later."""

    def note(self, client: Client, wanted: WatchGpus) -> None:
        """Note what a client wants from now on, and tell it what the others know."""
        self._wanted[client] = wanted
        for node in wanted.nodes:
            for told in [told for (name, _), told in self._last.items() if name == node]:
                self._tell(client, told)

    def remove(self, client: Client) -> None:
        """Forget a client."""
        self._wanted.pop(client, None)

    def settings(self, node: str) -> SamplerSettings | None:
        """Return how a node is to be sampled for all of them; `None` if nobody asks."""
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
        """Forget what was said of a node: its sampler has ended."""
        self._last = {key: told for key, told in self._last.items() if key[0] != node}

    def tell(self, told: NodeGpus) -> None:
        """Pass on what a sampler says; who is behind is spared samples, which are soon old."""
        is_sample = isinstance(told.news, SampleNews)
        if isinstance(told.news, InventoryNews):
            self.forget(told.node)  # all else is said again
        if is_sample:
            self._last.pop((told.node, type(None)), None)  # what was wrong
        else:
            self._last[told.node, type(told.news)] = told
        for client, wanted in self._wanted.items():
            is_behind = is_sample and client.transport.get_write_buffer_size()
            if wanted.settings and told.node in wanted.nodes and not is_behind:
                self._tell(client, told)
