"""A child that has an actor run a process on another node, and relays its stdin and stdout.

The actor dies with this process, as Ray does not keep actors whose owner has ended. Then the
process that it has started reads the end of its stdin.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any, NoReturn

from ..common.errors import DistError
from ..common.patience import patience
from ..common.protocol.node_messages import RelayOrders, read_relay_orders
from .ray_nodes import check_token, connect

_CHUNK = 1 << 20
_DETACHED = ("sh", "-c", 'exec 3<&0; "$@" <&3 3<&- &', "sh")
"""Ray kills the children of an actor. A grandchild reads the end of its stdin, and cleans up."""


class RemoteCommand:
    """The actor: it is pickled by value, so its node's Ray needs no package of ours."""

    def __init__(self) -> None:
        self._process: Any = None

    def auth_mode(self) -> str:
        """Return how its node authenticates others."""
        return os.environ.get("RAY_AUTH_MODE", "")

    def start(self, command: list[str], environment: dict[str, str], folder: str) -> None:
        """Start the process with the GPUs that Ray has given us."""
        mask = os.environ.get("CUDA_VISIBLE_DEVICES")
        given = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env={**environment, **given},
            cwd=folder,
            bufsize=0,
            start_new_session=True,
        )
        self._process.wait()

    def write(self, data: bytes) -> None:
        """Write to the process; empty data closes its stdin."""
        if data:
            self._process.stdin.write(data)
        else:
            self._process.stdin.close()

    def read(self, errors: bool, most: int) -> bytes:
        """Return the next output of the process; empty at the end."""
        stream = self._process.stderr if errors else self._process.stdout
        said: bytes = stream.read(most)
        return said


def main() -> NoReturn:
    """Start the process, and relay until it ends."""
    said = os.dup(1)
    os.dup2(2, 1)  # Ray prints
    orders = read_relay_orders(sys.argv[1].encode())
    try:
        actor = _actor(orders)
    except Exception as error:  # of many types, some of them private
        sys.exit(str(error))
    import ray

    def take() -> None:
        """Pass on what we read; one piece after the other, as Ray keeps no order of its own."""
        while True:
            data = os.read(0, _CHUNK)
            ray.get(actor.write.remote(data))
            if not data:
                return

    def give(errors: bool, target: int) -> None:
        while data := ray.get(actor.read.remote(errors, _CHUNK)):
            os.write(target, data)

    threading.Thread(target=take, daemon=True).start()
    complaints = threading.Thread(target=give, args=(True, 2), daemon=True)
    complaints.start()
    try:
        give(False, said)
        complaints.join()
        os._exit(0)
    except Exception as error:  # the actor, its node or the cluster is gone
        sys.exit(str(error))


def _actor(orders: RelayOrders) -> Any:
    nodes = connect()
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    node = next((node for node in nodes if node.name == orders.node), None)
    if node is None:
        raise DistError("no_nodes", f"{orders.node} is no longer a node of the Ray cluster.")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    actor = (
        ray.remote(RemoteCommand)
        .options(
            num_cpus=0,
            num_gpus=orders.gpus,
            max_concurrency=4,  # it is read and written at the same time
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False),
        )
        .remote()
    )
    try:
        mode = ray.get(actor.auth_mode.remote(), timeout=2 * patience.program)
    except ray.exceptions.GetTimeoutError:
        what = f" with {orders.gpus} free GPUs" if orders.gpus else ""
        raise DistError("node_failed", f"Ray has started no actor{what} on {node.name}.") from None
    check_token([node.address], mode)
    ray.get(actor.start.remote([*_DETACHED, *orders.command], dict(os.environ), os.getcwd()))
    return actor
