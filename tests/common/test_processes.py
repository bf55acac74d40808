"""A process is known again, whatever happens to the clock; another one with its pid is not it."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_dist_server.common.processes.process_ref import ProcessRef

FIND = """
import json, sys
from jupyter_dist_server.common.processes.process_ref import ProcessRef
print(ProcessRef(**json.loads(sys.argv[1])).find() is not None)
"""


def test_a_process_is_found_until_it_ends() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        reference = ProcessRef.of(child.pid)
        assert reference.find()
        assert 0 <= reference.age < 60
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert reference.find() is None  # a zombie
        child.wait()
        assert reference.find() is None


def test_another_process_or_boot_with_the_same_pid_is_another() -> None:
    me = ProcessRef.of(os.getpid())
    assert dataclasses.replace(me, start_ticks=me.start_ticks - 1).find() is None
    assert dataclasses.replace(me, boot="an earlier one").find() is None


@pytest.mark.root
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_step_of_the_clock_changes_nothing(tmp_path: Path) -> None:
    """Linux tells a start since the boot, and moves the boot (``btime``) with the clock."""
    stat = Path("/proc/stat").read_text()
    stepped = re.sub(r"^btime (\d+)", lambda m: f"btime {int(m[1]) + 2}", stat, flags=re.M)
    (tmp_path / "stat").write_text(stepped)
    script = 'mount --bind "$1" /proc/stat && shift && exec "$@"'
    find = [sys.executable, "-c", FIND, json.dumps(vars(ProcessRef.of(os.getpid())))]
    said = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "-", str(tmp_path / "stat"), *find],
        capture_output=True,
        text=True,
    )
    if "mount" in said.stderr or "unshare" in said.stderr:
        pytest.skip(f"no mounts here: {said.stderr}")
    assert said.stdout == "True\n", said.stderr
