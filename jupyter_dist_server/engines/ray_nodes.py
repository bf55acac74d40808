"""A child that prints the nodes of a Ray cluster; the relay connects in the same way."""

from __future__ import annotations

import ipaddress
import os
from collections import Counter
from typing import Any

import msgspec
import psutil

from ..common.errors import DistError
from ..common.protocol.failure_reason import Reason
from ..common.protocol.node_messages import RayNode, RayNodes

_START = "Start it with “ray start --head”, and on the other nodes “ray start --address=HOST:6379”."


def main() -> None:
    """Write the nodes, or why they are not known, to stdout."""
    said = os.dup(1)
    os.dup2(2, 1)  # Ray prints
    try:
        answer = RayNodes(connect())
    except DistError as error:
        answer = RayNodes(failure=Reason(error.code, error.message, error.hint))
    with os.fdopen(said, "wb") as file:
        file.write(msgspec.json.encode(answer))


def connect() -> list[RayNode]:
    """Return the cluster's living nodes; raise `DistError` without one, or if it is open to all."""
    try:
        import ray
    except ImportError as error:
        raise DistError(
            "engine_failed",
            f"Ray cannot be imported: {error}.",
            "Install it in the notebook's environment: pip install 'jupyter-dist-server[ray]'.",
        ) from error
    try:
        ray.init(
            address=os.environ.get("RAY_ADDRESS", "auto"),
            logging_level="error",
            log_to_driver=False,
        )
        rows = [row for row in ray.nodes() if row["Alive"]]
    except Exception as error:  # of many types, some of them private
        raise DistError(
            "no_nodes" if isinstance(error, ConnectionError) else "engine_failed",
            f"The Ray cluster cannot be used: {' '.join(str(error).split())}",
            f"{_START} One of the nodes must be the notebook's.",
            field="engine",
        ) from error
    nodes = _named(rows)
    check_token([node.address for node in nodes], os.environ.get("RAY_AUTH_MODE", ""))
    return nodes


def check_token(addresses: list[str], mode: str) -> None:
    """Raise `DistError` if other machines reach these nodes without a token."""
    open_at = [one for one in addresses if not ipaddress.ip_address(one).is_loopback]
    if open_at and mode.lower() != "token":
        raise DistError(
            "engine_insecure",
            f"The Ray cluster does not ask for a token: who reaches {open_at[0]} can run programs "
            "as its user, and read the keys of pools.",
            "Set RAY_AUTH_MODE=token and the same RAY_AUTH_TOKEN on all nodes, and for the "
            "notebook, then start Ray and JupyterLab again.",
        )


def _named(rows: list[dict[str, Any]]) -> list[RayNode]:
    ours = {one.address for addresses in psutil.net_if_addrs().values() for one in addresses}
    hosts = Counter(row["NodeManagerHostname"] for row in rows)
    nodes = []
    for row in rows:
        host, node, address = row["NodeManagerHostname"], row["NodeID"], row["NodeManagerAddress"]
        name = host if hosts[host] == 1 else f"{host}-{node[:6]}"
        gpus = int(row["Resources"].get("GPU", 0))
        nodes.append(RayNode(name, node, address, address in ours, gpus))
    return sorted(nodes, key=lambda node: node.name)
