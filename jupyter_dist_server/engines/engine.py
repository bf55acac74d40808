"""What an engine does: it knows some nodes, and starts a process on one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

Program = tuple[list[str], dict[str, str]]
"""A command for this machine, and its environment."""


@dataclass(frozen=True)
class Node:
    """A machine where an agent can be started, by the name that the engine gives it."""

    name: str
    address: str
    """The IP address where other nodes reach it."""
    here: bool
    """Whether this process runs there."""
    gpus: int = 0
    """How many GPUs the engine knows of."""


class Engine(Protocol):
    """Starts processes on nodes that a cluster manages."""

    name: str
    gives_gpus: bool
    """Whether it decides which GPUs the ranks on other nodes get."""

    def is_around(self, environment: Mapping[str, str]) -> bool:
        """Tell whether an environment is in a cluster of its kind."""
        ...

    def job(self, environment: Mapping[str, str]) -> str:
        """Return the ID of the job that an environment is in; empty if there is none."""
        ...

    def nodes(self, environment: Mapping[str, str], python: str) -> list[Node]:
        """Return the nodes that the notebook kernel may use; blocks while the cluster is asked.

        `python` is the kernel's interpreter; empty is this process's own. Raises `DistError` if the
        nodes are not known.
        """
        ...

    def on_node(
        self, node: str, command: list[str], gpus: int, environment: Mapping[str, str]
    ) -> Program:
        """Return what runs a command on a node, in our working directory, with stdin and stdout.

        The command gets so many GPUs if the engine decides on that. The local process that stands
        for it ends when it does, with its exit code.
        """
        ...
