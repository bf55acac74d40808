"""What all engines know: the nodes of a cluster, and how to start a process on one of them."""

from __future__ import annotations

from dataclasses import dataclass

Program = tuple[list[str], dict[str, str]]
"""A command for this machine, and its environment. It stands for a process on another node: it has
the same stdin, stdout and stderr, and ends when that process does."""


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
