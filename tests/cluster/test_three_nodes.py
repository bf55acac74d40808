"""Ranks on three unequal nodes, of which one has a wrong clock, by Slurm."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

WHY_NOT = why_not() or ("" if shutil.which("cc") else "needs a C compiler")
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"
AHEAD = 90
"""Seconds by which the clock of the third host is ahead."""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """Return three hosts with Slurm."""
    library = tmp_path_factory.mktemp("skew") / "skew.so"
    source = Path(__file__).with_name("skew.c")
    flags = ("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-nonnull-compare")
    subprocess.run(["cc", *flags, "-o", str(library), str(source), "-ldl"], check=True)
    hosts = Hosts(3)
    try:
        start_slurm(hosts)
        skew = hosts.base / "tmp" / "skew"
        hosts.run(3, "sh", "-c", f"echo {AHEAD} > {skew}")
        hosts.variables |= {"LD_PRELOAD": str(library), "SKEW_FILE": str(skew)}
        yield hosts
    finally:
        hosts.close()


@pytest.fixture(scope="module")
def lab(hosts: Hosts) -> Iterator[Lab]:
    """Return a shell with a pool on all of them."""
    lab = Lab(hosts, "salloc", "--nodes=3", "--quiet")
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --map n1,n2,n2,n3")
        yield lab
    finally:
        lab.close()


def test_each_node_knows_its_ranks(lab: Lab) -> None:
    said = lab.ok(
        "%%distributed\nimport os, socket\n"
        "names = 'LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE'\n"
        "print(socket.gethostname(), rank, *[os.environ[name] for name in names.split()])"
    )
    for line in ("n1 0 0 1 0 3", "n2 1 0 2 1 3", "n2 2 1 2 1 3", "n3 3 0 1 2 3"):
        assert line in said
    assert "sum 4.0" in lab.ok(SUM)


def test_times_of_a_node_with_a_wrong_clock_are_corrected(lab: Lab) -> None:
    lab.ok("%%distributed\nimport time\nt = torch.tensor([time.time()], dtype=torch.float64)")
    lab.ok("%dist_pull t --ranks all --as times")
    wrong = float(lab.ok("print((times[3] - times[0]).item())"))
    assert abs(wrong - AHEAD) < AHEAD / 3, "the clock is not wrong"
    said = lab.ok("%dist_status")
    idle = [int(seconds) for seconds in re.findall(r"idle for (-?\d+) s", said)]
    assert len(idle) == 4 and all(-2 <= seconds < AHEAD / 3 for seconds in idle), said
