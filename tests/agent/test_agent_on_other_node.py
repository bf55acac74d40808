"""The agent on another node, where it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from jupyter_dist_server.common.package_version import version
from jupyter_dist_server.common.processes.python_command import python_command
from jupyter_dist_server.common.protocol.node_messages import NodeOrders
from jupyter_dist_server.engines.start_failures import why_not_started

from ..pool_driver import pool_file
from ..waiting import PATIENCE

MODULE = "jupyter_dist_server.agent.agent_on_other_node"


def test_why_an_agent_can_have_no_folder_is_told_for_its_node(tmp_path: Path) -> None:
    """It was told that the node needs the same Python environment."""
    long = tmp_path / ("x" * 100)
    long.mkdir()
    agent = subprocess.run(
        python_command(sys.executable, MODULE),
        input=msgspec.json.encode(NodeOrders(version(), pool_file())) + b"\n",
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
