"""What control groups let a process use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_dist_server.common.processes.control_groups import (
    machine_cores,
    machine_memory,
    usable_cores,
    usable_memory,
)

from ..control_group import control_group
from ..waiting import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")

MODULE = usable_cores.__module__
GROUPS = Path("/sys/fs/cgroup")


def inside(group: Path, code: str) -> str:
    """Return what code prints that runs in a control group."""
    enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
    command = ["sh", "-c", enter, "sh", sys.executable, "-c", f"from {MODULE} import *\n{code}"]
    return subprocess.check_output(command, text=True, timeout=PATIENCE).strip()


def test_all_is_usable_where_nothing_limits_it() -> None:
    none = Path("/none/such")
    assert usable_memory(none) == machine_memory()
    assert usable_cores(none) == len(os.sched_getaffinity(0)) <= machine_cores()


def test_affinity_limits_cores() -> None:
    core = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, [{core}])\nprint(usable_cores())"
    command = [sys.executable, "-c", f"from {MODULE} import *\n{code}"]
    assert subprocess.check_output(command, text=True, timeout=PATIENCE) == "1\n"


@pytest.mark.root
def test_a_quota_limits_cores() -> None:
    with control_group(GROUPS / "cpu") as group:
        (group / "cpu.cfs_quota_us").write_text(str(50_000))  # of 100 ms, so half of a core
        assert inside(group, "print(usable_cores())") == "1"


@pytest.mark.root
def test_memory_of_a_group_is_limited() -> None:
    with control_group(GROUPS / "memory") as group:
        (group / "memory.limit_in_bytes").write_text(str(1 << 30))
        assert inside(group, "print(usable_memory())") == str(1 << 30)


def groups(root: Path, ours: str) -> Path:
    """Write which groups are ours, and return where groups are."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(ours)
    return root / "sys/fs/cgroup"


@pytest.mark.parametrize(("own", "above"), [("max", "100000"), ("100000", "max")])
def test_groups_of_version_2(own: str, above: str, tmp_path: Path) -> None:
    top = groups(tmp_path, "0::/slice/job\n")
    for folder, quota in ((top / "slice", above), (top / "slice/job", own)):
        folder.mkdir(parents=True)
        (folder / "cpu.max").write_text(f"{quota} 100000\n")
        (folder / "memory.max").write_text(quota + "\n")
    assert (usable_cores(tmp_path), usable_memory(tmp_path)) == (1, 100_000)


@pytest.mark.parametrize("seen", ["job", "."])
def test_groups_of_version_1(seen: str, tmp_path: Path) -> None:
    """Of a container, only the topmost of its groups may be seen."""
    top = groups(tmp_path, "9:cpuacct,cpu:/job\n4:memory:/job\n0::/\n")
    for name in ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us", "memory/memory.limit_in_bytes"):
        controller, _, file = name.partition("/")
        (top / controller / seen).mkdir(parents=True, exist_ok=True)
        (top / controller / seen / file).write_text("100000\n")
    assert (usable_cores(tmp_path), usable_memory(tmp_path)) == (1, 100_000)
