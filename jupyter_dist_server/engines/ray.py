"""Ray: agents are started by actors, each of which a relay on this machine holds.

Ray starts threads, and is large: only children import it, in the notebook kernel's interpreter.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import msgspec

from ..common.errors import DistError
from ..common.patience import patience
from ..common.processes.python_command import python_command
from ..common.protocol.node_messages import RelayOrders, read_nodes
from .engine import Node, Program

_NODES = "jupyter_dist_server.engines.ray_nodes"
_RELAY = "jupyter_dist_server.engines.ray_relay"


class Ray:
    """The nodes of one Ray cluster, one of which is this machine."""

    name = "ray"
    gives_gpus = True

    def is_around(self, environment: Mapping[str, str]) -> bool:
        """Tell whether an environment names a cluster."""
        return bool(environment.get("RAY_ADDRESS"))

    def job(self, environment: Mapping[str, str]) -> str:
        """Return nothing: nodes belong to the cluster, not to a job."""
        return ""

    def nodes(self, environment: Mapping[str, str], python: str) -> list[Node]:
        """Return the living nodes; raise `DistError` without a cluster, or if it is open to all.

        `python` is the notebook kernel's interpreter; empty is this process's own.
        """
        limit = 2 * patience.program  # it imports Ray first
        try:
            asked = subprocess.run(
                python_command(python or sys.executable, _NODES),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            address = environment.get("RAY_ADDRESS", "")
            where = f" at {address}" if address not in ("", "auto") else ""
            raise DistError(
                "engine_failed",
                f"The Ray cluster{where} did not answer within {limit:g} s.",
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

    def on_node(
        self, node: str, command: list[str], gpus: int, environment: Mapping[str, str]
    ) -> Program:
        """Return a relay that has an actor on a node, with so many GPUs, run a command."""
        orders = msgspec.json.encode(RelayOrders(node, gpus, command)).decode()
        return [*python_command(sys.executable, _RELAY), orders], dict(environment)


def _no_answer(asked: subprocess.CompletedProcess[bytes]) -> DistError:
    """Return the error for a child that has ended without an answer, with its last line."""
    code = asked.returncode
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    said = asked.stderr.decode(errors="replace").strip().splitlines()
    words = f": {said[-1].strip().rstrip('.')}" if said else ""
    return DistError(
        "engine_failed",
        f"The process that asks Ray for its nodes ended with {how}{words}.",
        "Check that “ray status” works on this machine, with the notebook's interpreter.",
    )
