"""Large values go to another node once, whichever ranks there get them, and from there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

SIZE = 100 << 20
FEW = SIZE // 4
"""More bytes than all else takes that goes over the network meanwhile."""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Return two hosts with Slurm, joined by a cable that takes seconds for a large value."""
    hosts = Hosts()
    try:
        start_slurm(hosts)
        hosts.throttle(2, megabits=400)
        yield hosts
    finally:
        hosts.close()


@pytest.fixture(scope="module")
def lab(hosts: Hosts) -> Iterator[Lab]:
    """Return a shell with one rank on the first host, and two on the second."""
    lab = Lab(hosts, "salloc", "--nodes=2", "--quiet")
    try:
        lab.ok("%load_ext jupyter_dist_server")
        lab.ok("%dist_init --map n1,n2,n2")
        lab.ok(f"import numpy; big = numpy.arange({SIZE // 8}.0); small = numpy.arange(9.0)")
        yield lab
    finally:
        lab.close()


def test_a_value_goes_to_another_node_once(lab: Lab, hosts: Hosts) -> None:
    before, _ = hosts.traffic(2)
    said = lab.ok("%dist_push big")
    after, _ = hosts.traffic(2)
    assert SIZE < after - before < SIZE + FEW
    assert "of 100 MiB (node n2, " in said and "Pushed `big`" in said, said
    lab.ok("%%distributed\nmine = float(big[-1] + big.sum() + rank)\nbig += 1")
    lab.ok("%dist_pull mine --ranks all --as sums")
    lab.ok("whole = float(big[-1] + big.sum()); assert sums == [whole, whole + 1, whole + 2], sums")


def test_a_value_comes_from_another_node(lab: Lab, hosts: Hosts) -> None:
    lab.ok("%%distributed\nhalf = big * 0.5 + rank")
    _, before = hosts.traffic(2)
    said = lab.ok("%dist_pull half --rank 2 --as far")
    _, after = hosts.traffic(2)
    assert SIZE < after - before < SIZE + FEW
    assert "of 100 MiB (node n2, " in said and "Pulled" in said, said
    lab.ok("assert (far == (big + 1) * 0.5 + 2).all()")
    lab.ok("%dist_pull half --ranks all --as halves")
    lab.ok("assert all((halves[r] == (big + 1) * 0.5 + r).all() for r in range(3))")
    lab.ok("far += 1")  # it is the notebook's own memory


def test_nothing_is_left_of_a_value_that_has_moved(lab: Lab) -> None:
    """The rank that took it for its node has no more of it than the others."""
    lab.ok("%dist_push big")
    lab.ok("%dist_push small")  # answered after all that has to do with the other
    said = lab.ok(
        "%%rank [1]\nimport os\ndel big\n"
        "names = [os.path.realpath(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd')]\n"
        "print('left', [name for name in names if 'jupyter-dist-' in name])"
    )
    assert "left []" in said, said
