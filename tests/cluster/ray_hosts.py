"""Ray on our hosts: its head on the first one."""

from __future__ import annotations

import importlib.util
import secrets
import subprocess
import sys

from ..waiting import wait_for
from .hosts import Hosts, why_no_hosts

PORT = 6379
FEW = (  # processes of its own, and without waiting for the ports that these find
    "--dashboard-agent-grpc-port=6380",
    "--dashboard-agent-listen-port=6381",
    "--runtime-env-agent-port=6382",
    "--metrics-export-port=6383",
    "--include-log-monitor=false",
    "--no-monitor",
)
PROGRAM = "import sys; from ray.scripts.scripts import main; sys.exit(main())"


def why_not() -> str:
    """Say why there can be no Ray here; empty if there can."""
    if importlib.util.find_spec("ray") is None:
        return "needs Ray: pip install jupyter-dist-server[ray]"
    return why_no_hosts()


class RayCluster:
    """A Ray cluster, with a node on each host.

    Parameters
    ----------
    hosts : Hosts
        Where.
    mode : str
        ``token``, or ``disabled`` for asking nobody.
    store : int
        Bytes that each node has for objects.
    """

    def __init__(self, hosts: Hosts, mode: str = "token", store: int = 80_000_000) -> None:
        self._hosts = hosts
        self._store = store
        hosts.variables |= {
            "RAY_AUTH_MODE": mode,
            "RAY_AUTH_TOKEN": secrets.token_hex(32) if mode == "token" else "",
            "RAY_TMPDIR": str(hosts.base / "tmp"),
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONUNBUFFERED": "1",
            "RAY_agent_register_timeout_ms": "120000",  # on a busy machine
        }
        hosts.variables.pop("RAY_ADDRESS", None)
        head = f"{hosts.address(1)}:{PORT}"
        self._nodes = [self._start(1, "--head", f"--port={PORT}", "--include-dashboard=false")]
        self._nodes += [self._start(number, f"--address={head}") for number in hosts.numbers[1:]]
        hosts.variables["RAY_ADDRESS"] = head

    def _start(self, number: int, *where: str) -> subprocess.Popen[bytes]:
        name = f"ray{number}"
        address = f"--node-ip-address={self._hosts.address(number)}"
        size = ("--num-cpus=1", f"--object-store-memory={self._store}", *FEW)
        words = (sys.executable, "-c", PROGRAM, "start", "--block", address, *size, *where)
        node = self._hosts.daemon(name, *self._hosts.command(number, *words))
        log = self._hosts.base / "log" / f"{name}.out"
        wait_for(lambda: "Ray runtime started" in log.read_text(), "the start of Ray")
        return node

    def close(self) -> None:
        """End it on all hosts."""
        self._hosts.variables.pop("RAY_ADDRESS", None)
        for node in reversed(self._nodes):
            node.terminate()
        for node in self._nodes:
            node.wait()
