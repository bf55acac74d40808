"""What an engine's answer about nodes makes of their addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_dist_server.common.errors import DistError
from jupyter_dist_server.engines.slurm import Slurm


def test_a_node_with_a_loopback_address_is_refused(tmp_path: Path) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\necho NodeName=n1 NodeAddr=127.0.1.1 NodeHostName=n1\n")
    scontrol.chmod(0o755)
    with pytest.raises(DistError, match=r"127\.0\.1\.1 on this machine, which other") as refused:
        Slurm().nodes({"PATH": str(tmp_path), "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_ID": "1"}, "")
    assert "NodeAddr" in refused.value.hint
