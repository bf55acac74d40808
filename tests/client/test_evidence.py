"""A rank that does not answer is looked at from outside, and comes to no harm by that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_dist_server.client.ranks.gather_evidence import signalled_stack
from jupyter_dist_server.common.pool_folder import stack_file
from jupyter_dist_server.common.processes.process_ref import ProcessRef


@pytest.mark.skipif(sys.platform != "linux", reason="no such signal elsewhere")
async def test_a_rank_that_cannot_write_its_stack_yet_is_not_signalled(tmp_path: Path) -> None:
    """Its file is there: the one of the rank that it replaces."""
    stack_file(tmp_path, 0).touch()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert await signalled_stack(stack_file(tmp_path, 0), ProcessRef.of(process.pid)) == []
        process.communicate(b"\n")
    assert process.returncode == 0
