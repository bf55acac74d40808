"""What an engine does: it knows some nodes, and starts a process on one of them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Protocol


@dataclass(frozen=True)
class Node:
    """A machine where an agent can be started."""

    name: str
    address: str
    here: bool
    gpus: int = 0


class Engine(Protocol):
    """Starts processes on the nodes that somebody else manages."""

    name: str
    gives_gpus: bool
    """Whether it decides which GPUs the ranks on other nodes get."""

    def is_around(self, environment: Mapping[str, str]) -> bool:
        """Tell whether an environment is in a cluster of its kind."""
        ...

    def job(self, environment: Mapping[str, str]) -> str:
        """Return the id of the job that an environment is in; empty if there is none."""
        ...

    def nodes(self, environment: Mapping[str, str], python: str) -> list[Node]:
        """Return the nodes that may be used; blocks for as long as the cluster takes.

        Raises
        ------
        DistError
            If that is not known.
        """
        ...

    def start(
        self,
        node: str,
        command: list[str],
        stream: int,
        log: BinaryIO,
        gpus: int,
        environment: Mapping[str, str],
    ) -> RemoteProcess:
        """Start a process on a node, in our working directory.

        Raises
        ------
        OSError
            If the engine's command cannot be started.
        """
        ...


RemoteProcess = subprocess.Popen[bytes]
"""A process on another node, by the local process that stands for it: it ends when that one does,
and its exit code is that one's."""
