"""The nodes that pools may use where a server runs, for a form to offer them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...common.errors import DistError
from ...engines.choose_engine import LOCAL, engine_for
from ...engines.engine import Node


@dataclass(frozen=True)
class Cluster:
    """Several nodes of one engine."""

    engine: str
    job: str
    nodes: tuple[Node, ...]


def cluster_around(environment: Mapping[str, str], setting: str) -> Cluster | None:
    """Return the cluster that an environment is in; `None` if pools have this machine only.

    Not for an event loop. `setting` is the engine that the server names, if it does.
    """
    if setting == LOCAL:
        return None
    try:
        engine = engine_for(environment, setting)
        found = engine.nodes(environment, "")
    except DistError:  # whoever asks for several nodes is told
        return None
    here = [node for node in found if node.here]
    if not here or len(found) < 2:
        return None
    nodes = (*here, *(node for node in found if not node.here))
    return Cluster(engine.name, engine.job(environment), nodes)
