"""What a pool's leases tell the users of its nodes."""

from __future__ import annotations

import logging

import msgspec

from ..common.files.inherited_lease import InheritedLease
from ..common.protocol.agents.agent_messages import DescribeLease
from .nodes.agents_of_other_nodes import Nodes
from .time_limit import TimeLimit

_LOG = logging.getLogger(__name__)


class LeaseDescription:
    """Tells all users what the pool is called, and when it ends.

    Parameters
    ----------
    name : str
        The notebook's path.
    lease : InheritedLease or None
        Of the pool's GPUs here.
    nodes : Nodes
        Have leases of their own.
    limit : TimeLimit
        Knows when it ends.

    Attributes
    ----------
    name : str
        The notebook's path; it may change.
    """

    def __init__(
        self, name: str, lease: InheritedLease | None, nodes: Nodes, limit: TimeLimit
    ) -> None:
        self.name = name
        self._lease = lease
        self._nodes = nodes
        self._limit = limit

    def tell(self) -> None:
        """Tell the users of all nodes."""
        limit = self._limit.state
        self.say(DescribeLease(self.name, limit.ends_by, limit.idle_since))

    def say(self, said: DescribeLease) -> None:
        """Say something; the pool does not end for what only others read."""
        try:
            if self._lease:
                self._lease.tell(**msgspec.structs.asdict(said))
        except OSError as error:
            _LOG.warning(
                "The lease does not say what the pool is called and when it ends: %s", error
            )
        self._nodes.describe(said)
