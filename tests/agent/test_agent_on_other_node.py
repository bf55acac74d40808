"""The agent on another node, where it cannot start."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from jupyter_dist_server.common.processes.process_ref import ProcessRef, boot_id
from jupyter_dist_server.common.processes.python_command import python_command
from jupyter_dist_server.common.protocol.agents.attachment import KERNEL
from jupyter_dist_server.common.protocol.node_agents.node_orders import NodeOrders
from jupyter_dist_server.common.protocol.pool_file import PlacedRank, PoolFile
from jupyter_dist_server.common.protocol.pool_record import PoolRecord
from jupyter_dist_server.common.version import version
from jupyter_dist_server.engines.start_failures import why_not_started

from ..waiting import PATIENCE

MODULE = "jupyter_dist_server.agent.agent_on_other_node"


def test_why_an_agent_can_have_no_folder_is_told_for_its_node(tmp_path: Path) -> None:
    """It was told that the node needs the same Python environment."""
    pool = PoolFile(
        id="p-1",
        key="00",
        world_size=1,
        backend="gloo",
        start_method="fork",
        timeout=60.0,
        cwd=b"/",
        sys_path=[],
        thread_limits={},
        owner=ProcessRef.of(os.getpid()),
        grace=0.0,
        ranks=[PlacedRank("cpu", None, None)],
        boot=boot_id(),
        host=socket.gethostname(),
        owner_kind=KERNEL,
        record=PoolRecord("p-1", None, "", 1, "gloo", "cycle", "fork", "", "/"),
    )
    long = tmp_path / ("x" * 100)
    long.mkdir()
    agent = subprocess.run(
        python_command(sys.executable, MODULE),
        input=msgspec.json.encode(NodeOrders(version(), pool)) + b"\n",
        env=os.environ | {"TMPDIR": str(long)},
        stderr=subprocess.PIPE,
        timeout=PATIENCE,
        check=False,
    )
    said = agent.stderr.decode().splitlines()
    reason = why_not_started("n2", sys.executable, version(), said)
    expected = f"The pool's agent did not start on node n2. The path of the temporary folder {long}"
    assert reason.message.startswith(f"{expected} is too long"), said
    assert "Set the environment variable TMPDIR" in reason.hint
    assert list(long.iterdir()) == []
