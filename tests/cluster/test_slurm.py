"""A notebook in a Slurm allocation of two nodes, with its ranks on both: all for real."""

from __future__ import annotations

import json
import os
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..waiting import wait_for
from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"
SALLOC = ("salloc", "--nodes=2", "--quiet")
LOST_WITHIN = 8.0
"""Seconds within which the cell says that a node is cut off."""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Return two hosts with Slurm."""
    hosts = Hosts()
    try:
        start_slurm(hosts)
        yield hosts
    finally:
        hosts.close()


@pytest.fixture
def lab(hosts: Hosts, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Return a shell with a pool on two nodes; nothing of it is left on either."""
    lab = Lab(hosts, *SALLOC, *getattr(request, "param", "").split())
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --nodes 2 -n 4")
        yield lab
    finally:
        lab.close()
        wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pool")


@pytest.mark.parametrize(
    "lab", ["", "srun --overlap --nodes=1 --ntasks=1"], ids=["salloc", "srun"], indirect=True
)
def test_a_cell_runs_on_both_nodes(lab: Lab) -> None:
    """What torchrun sets is right on each, all ranks are in one group, and each can be replaced."""
    said = lab.ok(
        "%%distributed\n"
        "import os, socket\n"
        "names = 'RANK LOCAL_RANK GROUP_RANK LOCAL_WORLD_SIZE WORLD_SIZE GROUP_WORLD_SIZE'\n"
        "total = torch.tensor([rank + 1.0])\n"
        "dist.all_reduce(total)\n"
        "print(socket.gethostname(), *[os.environ[n] for n in names.split()],\n"
        "      os.environ['GLOO_SOCKET_IFNAME'], total.item())"
    )
    for rank in range(4):
        assert f"n{rank // 2 + 1} {rank} {rank % 2} {rank // 2} 2 4 2 eth0 10.0" in said
    assert "n2" in lab.ok("%dist_status")
    lab.ok("import numpy; big = numpy.arange(3_000_000.0)")
    lab.ok("%dist_push big")
    lab.ok("%%distributed\nhalf = big * 0.5 + rank")
    lab.ok("%dist_pull half --ranks all --as halves")
    lab.ok("assert all((halves[r] == big * 0.5 + r).all() for r in range(4)), halves")
    answer = lab.run("%%rank [3]\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert answer["error"]
    assert "dead" in lab.ok("%dist_status")
    lab.ok("%dist_restart --ranks 3")
    assert "sum 4.0" in lab.ok(SUM)
    lab.ok("%dist_restart")
    assert "sum 4.0" in lab.ok(SUM)
    lab.ok("%dist_shutdown")


def test_tcp_keeps_connections_to_another_node_alive(lab: Lab, hosts: Hosts) -> None:
    """A firewall between the nodes forgets those on which nothing is said."""
    pid = int(lab.ok("import os; print(os.getpid())"))

    def are_kept() -> bool:
        said = hosts.run(1, "ss", "--tcp", "--numeric", "--options", "--processes", "--no-header")
        there = f"{hosts.address(2)}:"
        ours = [line for line in said.splitlines() if f"pid={pid}," in line and there in line]
        return bool(ours) and all("timer:(keepalive," in line for line in ours)

    wait_for(are_kept, "keepalive on all connections to the other node")
    lab.ok("%dist_shutdown")


def test_a_node_that_is_cut_off_is_said_and_the_other_one_can_be_used(
    lab: Lab, hosts: Hosts
) -> None:
    """The cell fails and says so, and the ranks on the lost node end by themselves."""
    begun = hosts.base / "begun"
    lab.begin(
        f"%%distributed\nif rank == 3:\n    import time\n    open('{begun}', 'w').close()\n"
        "    time.sleep(600)\ndist.barrier()"
    )
    wait_for(begun.exists, "the cell's begin")
    begun.unlink()
    hosts.cut(2)
    cut = time.monotonic()
    try:
        answer = lab.end()
        assert time.monotonic() - cut < 4 * LOST_WITHIN  # on a busy machine, too
        assert answer["error"]
        said = lab.ok("%dist_status")
        assert said.count("its node n2 has been unreachable since") == 2
        assert "here 0\n" in lab.ok("%%rank [0]\nprint('here', rank)")
        wait_for(lambda: not hosts.folders(2), "the end of the agent on the second node")
    finally:
        hosts.mend(2)
    lab.ok("%dist_restart --ranks 2,3")
    assert "sum 4.0" in lab.ok(SUM)
    lab.ok("%dist_shutdown")


def test_stop_ends_a_cell_on_both_nodes(lab: Lab, hosts: Hosts) -> None:
    assert "Interrupted: " in str(lab.stop_endless_cell(rank=3))
    assert "sum 4.0" in lab.ok(SUM)
    (rank,) = hosts.processes(2, "dist-rank-3")
    rank.suspend()
    try:
        error = lab.run("%%distributed --ranks 3 --timeout 1\npass")["error"]
    finally:
        rank.resume()
    assert "Rank 3 did not stop: its process is stopped" in error


STRANGER = """
import socket, sys
# ZMTP's greeting without keys. A ZeroMQ socket would hang up, too, perhaps before it is refused.
greeting = b"\\xff" + bytes(8) + b"\\x7f\\x03\\x01" + b"NULL".ljust(20, b"\\0") + bytes(32)
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as rank:
    rank.sendall(greeting)
    print(len(b"".join(iter(lambda: rank.recv(4096), b""))))
"""


def test_who_has_no_key_is_refused_and_a_lost_agent_replaced(lab: Lab, hosts: Hosts) -> None:
    (ours,), (theirs,) = hosts.folders(1), hosts.folders(2)
    tmp = hosts.base / "tmp"
    address = json.loads(hosts.run(1, "cat", f"{tmp}/{ours}/addresses.json"))["2"]
    log = f"{tmp}/{theirs}/rank-2.log"
    refused = "Refused a connection without the pool's keys"
    assert refused not in hosts.run(2, "cat", log), "somebody of ours has no key"
    for channel, port in address["ports"].items():
        said = hosts.run(1, sys.executable, "-c", STRANGER, address["host"], str(port))
        assert int(said) <= 64, f"{channel}: more than a greeting, and then hangs up"
    wait_for(lambda: refused in hosts.run(2, "cat", log), "a line")
    assert "sum 4.0" in lab.ok(SUM)
    (agent,) = hosts.processes(2, "dist-agent")
    agent.kill()
    wait_for(lambda: "the agent on its node n2 ended" in lab.ok("%dist_status"), "a word of it")
    lab.ok("%dist_restart --ranks 2,3")
    assert "sum 4.0" in lab.ok(SUM)


def test_nothing_is_left_when_the_shell_is_killed(hosts: Hosts) -> None:
    lab = Lab(hosts, *SALLOC)
    lab.ok("%load_ext jupyter_dist_server")
    lab.ok("%dist_init --nodes 2 -n 2")
    assert hosts.folders(1) and hosts.folders(2)
    lab.begin("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pool")
    lab.close()


def test_a_cancelled_allocation_is_said(hosts: Hosts) -> None:
    lab = Lab(hosts, *SALLOC)
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --nodes 2 -n 2")
        job = lab.ok("import os; print(os.environ['SLURM_JOB_ID'])").strip()
        begun = hosts.base / "begun"
        lab.begin(f"%%rank [1]\nimport time\nopen('{begun}', 'w').close()\ntime.sleep(600)")
        wait_for(begun.exists, "the cell's begin")
        begun.unlink()
        hosts.run(1, "scancel", job)
        said = f"Slurm has cancelled the pool's step of job {job} on its node n2"
        error, shown = lab.end()["error"], lab.ok("%dist_status")
        assert f"Rank 1 died: {said}." in error and f"dead: {said}" in shown
        over = f"The allocation (Slurm job {job}) has ended, and node n2 cannot be used again. Save"
        assert over in error and over in shown
        assert "--ranks 1" not in error + shown and "--without-lost-nodes" not in error + shown
        lab.run("%dist_restart --ranks 1")
        ended = f"the allocation (Slurm job {job}) has ended"
        wait_for(lambda: f"dead: {ended}" in lab.ok("%dist_status"), "a word of the end")
        assert over in lab.ok("%dist_status")
        lab.ok("%dist_shutdown")
        error = lab.run("%dist_init --nodes 2 -n 2")["error"]
        assert f"The allocation (Slurm job {job}) has ended.\nGet another" in error
        assert "Python" not in error
    finally:
        lab.close()
    wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pool")


def test_what_cannot_be_is_said(hosts: Hosts) -> None:
    lab = Lab(hosts, *SALLOC)
    try:
        lab.ok("%load_ext jupyter_dist_server")
        answer = lab.run("%dist_init --nodes 3 -n 3")
        assert "the allocation has 2: n1, n2" in answer["error"]
        python = os.path.realpath(sys.executable)
        hosts.run(2, "mount", "--bind", "/dev/null", python)
        try:
            answer = lab.run("%dist_init --nodes 2 -n 2")
        finally:
            hosts.run(2, "umount", python)
        assert "On node n2, Python cannot be started" in answer["error"]
        bare, older = _pythons(hosts.base)
        answer = lab.run(f"%dist_init --nodes 2 -n 2 --python {bare}")
        assert f"On node n2, jupyter-dist-server is not installed in {bare}." in answer["error"]
        assert f"Run on n2: {bare} -m pip install jupyter-dist-server==" in answer["error"]
        answer = lab.run(f"%dist_init --nodes 2 -n 2 --python {older}")
        assert f"Node n2 has jupyter-dist-server 0.0.1 in {older}, the notebook" in answer["error"]
        assert not hosts.folders(1) and not hosts.folders(2)
        lab.begin("%dist_init --nodes 2 -n 4")
        # Of a rank that is stopped while it starts, nothing is heard; then its agent is killed.
        (agent,) = wait_for(lambda: hosts.processes(2, "dist-agent"), "the agent")
        # It has two of the four.
        ranks = lambda: hosts.processes(2, "dist-rank-2") + hosts.processes(2, "dist-rank-3")  # noqa: E731
        rank, *_ = wait_for(ranks, "the first moment of a rank")
        rank.suspend()
        agent.kill()
        # The rank may still have its agent's output, which then does not end.
        error = lab.end()["error"]
        assert "agent on node n2 ended." in error or "node n2 has been unreachable" in error, error
        wait_for(lambda: not hosts.folders(1), "the end of the pool")
    finally:
        lab.close()


def test_options_of_the_job_do_not_change_the_step_of_another_node(hosts: Hosts) -> None:
    lab = Lab(hosts, *SALLOC)
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("import os; os.environ |= {'SLURM_GPUS': '8', 'SLURM_LABELIO': '1'}")
        lab.ok("%dist_init --nodes 2 -n 2")
        assert "8 1" in lab.ok(
            "%%rank [1]\nimport os\nprint(os.environ['SLURM_GPUS'], os.environ['SLURM_LABELIO'])"
        )
        lab.ok("%dist_shutdown")
    finally:
        lab.close()


def _pythons(folder: Path) -> list[Path]:
    """Return an interpreter without our package, and one with another version of it."""
    pythons = []
    for name in ("bare", "older"):
        venv.create(folder / name, with_pip=False)
        (site,) = (folder / name).glob("lib/python3*/site-packages")
        pythons.append(folder / name / "bin" / "python")
    (site / "all.pth").write_text("".join(f"{path}\n" for path in sys.path if path))
    (site / "jupyter_dist_server-0.0.1.dist-info").mkdir()
    metadata = site / "jupyter_dist_server-0.0.1.dist-info" / "METADATA"
    metadata.write_text("Metadata-Version: 2.1\nName: jupyter-dist-server\nVersion: 0.0.1\n")
    return pythons


def test_ranks_are_placed_as_asked_for(hosts: Hosts) -> None:
    lab = Lab(hosts, *SALLOC)
    show = "%%distributed\nimport socket\nprint(socket.gethostname(), device)"
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --engine slurm --ranks-per-node 1")
        said = lab.ok(show)
        assert "n1 cpu" in said and "n2 cpu" in said
        assert "already running" in lab.ok("%dist_init --engine slurm --nodes 2")
        lab.ok("%dist_shutdown")
        lab.ok("%dist_init --map n1,n2,n2,n1,n2")
        said = lab.ok(
            "%%distributed\nimport os, socket\nw = dist.new_group()\nt = torch.ones(1)\n"
            "dist.all_reduce(t)\n"
            "print(socket.gethostname(), *[os.environ[n] for n in ('RANK', 'LOCAL_RANK',\n"
            "      'LOCAL_WORLD_SIZE', 'GROUP_RANK')], t.item())"
        )
        for line in ("n1 0 0 2 0", "n2 1 0 3 1", "n2 2 1 3 1", "n1 3 1 2 0", "n2 4 2 3 1"):
            assert f"{line} 5.0" in said
        assert "already running" in lab.ok("%dist_init --map n1,n2,n2,n1,n2")
        assert "already has a pool" in lab.run("%dist_init --map n1,n2,n1,n2,n2")["error"]
        lab.ok("%dist_restart --ranks 3,4")
        assert "sum 5.0" in lab.ok(SUM)
        lab.ok("%dist_shutdown")
    finally:
        lab.close()
