"""A notebook on a Ray cluster of two nodes, with its ranks on both: all for real."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..waiting import wait_for
from .hosts import Hosts
from .lab import Lab
from .ray_hosts import RayCluster, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Return two hosts."""
    hosts = Hosts()
    yield hosts
    hosts.close()


@pytest.fixture
def cluster(hosts: Hosts) -> Iterator[RayCluster]:
    """Return a Ray cluster."""
    cluster = RayCluster(hosts)
    yield cluster
    cluster.close()


@pytest.fixture
def lab(hosts: Hosts, cluster: RayCluster) -> Iterator[Lab]:
    """Return a shell on a Ray cluster; nothing of its pools is left on either node."""
    lab = Lab(hosts)
    try:
        lab.ok("%load_ext jupyter_dist_server")
        yield lab
    finally:
        lab.close()
        wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pool")


def test_without_a_cluster_it_is_said(hosts: Hosts) -> None:
    lab = Lab(hosts)
    try:
        lab.ok("%load_ext jupyter_dist_server")
        answer = lab.run("%dist_init --engine ray")
        assert "The Ray cluster cannot be used" in answer["error"]
        assert "ray start --head" in answer["error"]
    finally:
        lab.close()


def test_cells_run_on_both_nodes(lab: Lab, hosts: Hosts, cluster: RayCluster) -> None:
    """As under Slurm: ranks, a lost agent, and the end of Ray."""
    lab.ok("%dist_init --engine ray -n 4")
    said = lab.ok(
        "%%distributed\nimport os, socket\n"
        "print(socket.gethostname(), rank, *map(os.getenv, ('GROUP_RANK', 'GLOO_SOCKET_IFNAME')))"
    )
    for line in ("n1 0 0 eth0", "n1 1 0 eth0", "n2 2 1 eth0", "n2 3 1 eth0"):
        assert line in said
    assert "sum 4.0" in lab.ok(SUM)
    (agent,) = hosts.processes(2, "dist-agent")
    agent.kill()
    wait_for(lambda: "the agent on its node n2 ended" in lab.ok("%dist_status"), "a word of it")
    lab.ok("%dist_restart --ranks 2,3")
    assert "sum 4.0" in lab.ok(SUM)
    cluster.close()
    wait_for(lambda: not hosts.folders(2), "the end of the agent on the second node")
    wait_for(lambda: "dead" in lab.ok("%dist_status"), "a word of it")
    assert "here 0\n" in lab.ok("%%rank [0]\nprint('here', rank)")
    lab.ok("%dist_shutdown")


def test_nothing_is_left_when_the_shell_is_killed(lab: Lab, hosts: Hosts) -> None:
    lab.ok("%dist_init --engine ray --nodes 2 -n 2")
    assert hosts.folders(1) and hosts.folders(2)
    lab.begin("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pool")


def test_a_cluster_without_a_token_is_refused(hosts: Hosts) -> None:
    cluster = RayCluster(hosts, "disabled")
    lab = Lab(hosts)
    try:
        lab.ok("%load_ext jupyter_dist_server")
        answer = lab.run("%dist_init --engine ray -n 2")
        assert "The Ray cluster does not ask for a token" in answer["error"]
        # What the notebook says of itself does not make the cluster ask.
        lab.ok("import os; os.environ.update(RAY_AUTH_MODE='token', RAY_AUTH_TOKEN='a' * 64)")
        assert "did not start on node n2" in lab.run("%dist_init --engine ray -n 2")["error"]
    finally:
        lab.close()
        cluster.close()
