"""Ray: agents are started by actors, of which a relay on this machine holds each.

Ray starts threads, and is large: only children import it, in the notebook kernel's interpreter.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import BinaryIO

import msgspec

from ..common.errors import DistError
from ..common.processes.python_command import python_command
from ..common.protocol.node_messages import RelayOrders, read_nodes
from .engine import Node, RemoteProcess

_NODES = "jupyter_dist_server.engines.ray_nodes"
_RELAY = "jupyter_dist_server.engines.ray_relay"
_PATIENCE = 60.0
"""Seconds within which Ray is imported, and its cluster answers."""


class Ray:
    """The nodes of one Ray cluster, one of which is this machine."""

    name = "ray"
    gives_gpus = True

    def is_around(self, environment: Mapping[str, str]) -> bool:
        """Tell whether an environment names a cluster."""
        return bool(environment.get("RAY_ADDRESS"))

    def job(self, environment: Mapping[str, str]) -> str:
        """Return nothing: nodes are those of the cluster, not of a job."""
        return ""

    def nodes(self, environment: Mapping[str, str], python: str) -> list[Node]:
        """Return the nodes that live.

        Raises
        ------
        DistError
            If there is no cluster, or one that anybody may use.
        """
        try:
            asked = subprocess.run(
                python_command(python or sys.executable, _NODES),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            address = environment.get("RAY_ADDRESS", "")
            where = f" at {address}" if address not in ("", "auto") else ""
            raise DistError(
                "engine_failed",
                f"The Ray cluster{where} did not answer within {_PATIENCE:g} s.",
                "Run “ray status” on this machine. If that fails too, start Ray again on all "
                "nodes, or correct RAY_ADDRESS.",
            ) from error
        except OSError as error:
            raise DistError(
                "engine_failed",
                f"Python cannot be started to ask Ray for its nodes: {error}.",
                "Check the notebook's interpreter.",
            ) from error
        try:
            answer = read_nodes(asked.stdout)
        except ValueError as error:
            raise _no_answer(asked) from error
        if answer.failure:
            raise answer.failure.error()
        return [Node(node.name, node.address, node.here, node.gpus) for node in answer.nodes]

    def start(
        self,
        node: str,
        command: list[str],
        stream: int,
        log: BinaryIO,
        gpus: int,
        environment: Mapping[str, str],
    ) -> RemoteProcess:
        """Have an actor on a node run a command; a local relay stands for it."""
        orders = msgspec.json.encode(RelayOrders(node, gpus, command)).decode()
        return subprocess.Popen(
            [*python_command(sys.executable, _RELAY), orders],
            stdin=stream,
            stdout=stream,
            stderr=log,
            env=dict(environment),
            start_new_session=True,
        )


def _no_answer(asked: subprocess.CompletedProcess[bytes]) -> DistError:
    """Return what to raise if the child has ended without an answer, with its last words."""
    code = asked.returncode
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    said = asked.stderr.decode(errors="replace").strip().splitlines()
    words = f": {said[-1].strip().rstrip('.')}" if said else ""
    return DistError(
        "engine_failed",
        f"The process that asks Ray for its nodes ended with {how}{words}.",
        "Check that “ray status” works on this machine, with the notebook's interpreter.",
    )
