"""A pool on three nodes goes on without those whose cables are cut."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ..waiting import wait_for
from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

WITHOUT = "%dist_restart --without-lost-nodes"
PLACES = (
    "%%distributed\nimport os, socket\n"
    "names = 'RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE'\n"
    "t = torch.ones(1)\ndist.all_reduce(t)\n"
    "print(socket.gethostname(), *[os.environ[name] for name in names.split()],\n"
    "      os.environ['GLOO_SOCKET_IFNAME'], dist.get_world_size(), t.item())"
)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Return three hosts with Slurm."""
    hosts = Hosts(3)
    try:
        start_slurm(hosts)
        yield hosts
    finally:
        hosts.close()


@pytest.fixture
def lab(hosts: Hosts) -> Iterator[Lab]:
    """Return a shell with a pool on all of them; nothing of it is left on any."""
    lab = Lab(hosts, "salloc", "--nodes=3", "--quiet")
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --map n1,n2,n3,n3,n1")
        yield lab
    finally:
        lab.close()
        wait_for(lambda: not any(map(hosts.folders, hosts.numbers)), "the end of the pool")


def _lose(hosts: Hosts, lab: Lab, number: int) -> str:
    """Cut a host off, and return what a cell on all ranks says then."""
    hosts.cut(number)
    said = f"its node n{number} has been unreachable since"
    wait_for(lambda: said in lab.ok("%dist_status"), "a word of the lost node")
    error: str = lab.run("%%distributed\nprint(rank)")["error"]
    return error


def test_a_pool_that_cannot_become_smaller_ends_with_the_reason(hosts: Hosts, lab: Lab) -> None:
    """It was lost without a word: no rank started, and nobody said why."""
    _lose(hosts, lab, 2)
    try:
        (ours,) = hosts.folders(1)
        folder = hosts.base / "tmp" / ours
        hosts.run(1, "mkdir", f"{folder}/pool.json.new")  # as good as a full disk
        error = lab.run(WITHOUT)["error"]
        assert f"{folder} cannot be written: Is a directory." in error
        assert "Free some space" in error
        wait_for(lambda: not hosts.folders(2), "the end of the agent on the lost node")
    finally:
        hosts.mend(2)


def test_a_pool_goes_on_without_lost_nodes(hosts: Hosts, lab: Lab) -> None:
    """Ranks have new numbers without gaps, whichever node is lost; and it takes no part later."""
    assert "No node of the pool is lost" in lab.run(WITHOUT)["error"]
    lab.ok("%%distributed\nkept = rank")
    error = _lose(hosts, lab, 2)
    try:
        assert "start its ranks there with %dist_restart --ranks 1." in error
        assert f"{WITHOUT} replaces all other ranks" in error
        assert WITHOUT in lab.ok("%dist_status")
        answer = lab.run("%dist_restart --ranks 1")
        assert "The pool's agent did not start on node n2.\n" in answer["error"], answer
        assert "srun: " in answer["error"], "its last lines"
        assert "4 of 5 ranks ready on the CPUs of n1, n3" in answer["text"]
        assert re.search(
            r"1 .* - .* dead: no agent started on its node n2\n", lab.ok("%dist_status")
        )
        assert "kept 4" in lab.ok("%%rank [0,2,3,4]\nprint('kept', kept)")
        said = lab.ok(WITHOUT)
        assert "4 ranks ready" in said
        assert said.endswith("s.\n4 ranks on 2 nodes: n1 (ranks 0,3), n3 (ranks 1-2).\n"), said
        said = lab.ok(PLACES)
        for line in ("n1 0 4 0 2 0 2", "n3 1 4 0 2 1 2", "n3 2 4 1 2 1 2", "n1 3 4 1 2 0 2"):
            assert f"{line} eth0 4 4.0" in said
        said = lab.ok("%dist_status")
        assert "4 ranks, gloo, on 2 nodes" in said and "n2" not in said
        assert "No node of the pool is lost" in lab.run(WITHOUT)["error"]
        wait_for(lambda: not hosts.folders(2), "the end of the agent on the lost node")
    finally:
        hosts.mend(2)
    lab.ok("import numpy; big = numpy.arange(3_000_000.0)")
    lab.ok("%dist_push big")
    lab.ok("%dist_pull big --ranks all --as bigs")
    lab.ok("assert all((bigs[rank] == big).all() for rank in range(4))")
    assert not hosts.folders(2) and not hosts.processes(2, "dist-agent")
    answer = lab.run("%%rank [1]\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert "%dist_restart --ranks 1" in answer["error"]
    lab.ok("%dist_restart --ranks 1")
    assert "n3 1 4 0 2 1 2 eth0 4 4.0" in lab.ok(PLACES)
    _lose(hosts, lab, 3)
    try:
        assert "on the CPU (gloo)" in (said := lab.ok(WITHOUT)) and "nodes" not in said
        said = lab.ok(PLACES)
        assert "n1 0 2 0 2 0 1" in said and "n1 1 2 1 2 0 1 eth0 2 2.0" in said
        said = lab.ok("%dist_status")
        assert re.search(r"2 ranks, gloo, on n1\n", said) and "n3" not in said
        wait_for(lambda: not hosts.folders(3), "the end of the agent on the other lost node")
    finally:
        hosts.mend(3)
    lab.ok("%dist_restart")
    assert "n1 1 2 1 2 0 1 eth0 2 2.0" in lab.ok(PLACES)
    lab.ok("%dist_shutdown")
