"""Notebooks with ranks on two nodes: the examples, two at once, and a server that is killed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import nbformat
import pytest

from tools.demo import EXAMPLES
from tools.demo_cluster import cells as quickstart_cells

from ..notebook_driver import Notebook
from ..waiting import wait_for
from .host_server import HostServer
from .hosts import Hosts
from .lab import Lab
from .slurm_hosts import start_slurm, why_not

pytestmark = [pytest.mark.root, pytest.mark.skipif(bool(why_not()), reason=why_not())]

HARDY = {
    "argv": [
        *("env", "-u", "JPY_PARENT_PID", sys.executable, "-m", "ipykernel_launcher"),
        *("-f", "{connection_file}"),
    ],
    "display_name": "A kernel that does not end with its server",
    "language": "python",
}
SUM = "%%distributed\nt = torch.ones(1)\ndist.all_reduce(t)\nprint('sum', t.item())"


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """Return two hosts with Slurm."""
    hosts = Hosts()
    hosts.variables["JUPYTER_RUNTIME_DIR"] = str(hosts.base / "run")
    hosts.variables["JUPYTER_DATA_DIR"] = str(hosts.base / "home" / "data")
    try:
        start_slurm(hosts)
        yield hosts
    finally:
        hosts.close()


def cells_of(name: str) -> list[str]:
    """Return the cells of an example, with four ranks on two nodes."""
    if name == "quickstart":  # its assertions are on two ranks
        return quickstart_cells("slurm")
    cells = nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4).cells  # type: ignore[no-untyped-call]
    start = "%dist_init --nodes 2 -n 4"
    return [re.sub("^%dist_init.*", start, c.source) for c in cells if c.cell_type == "code"]


NAMES = sorted({path.stem for path in EXAMPLES.glob("*.ipynb")} - {"kaggle_two_gpus"})  # one node


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name == "quickstart" else pytest.mark.slow) for name in NAMES],
)
def test_an_example(name: str, hosts: Hosts) -> None:
    lab = Lab(hosts, "salloc", "--nodes=2", "--quiet")
    try:
        lab.ok(f"%cd -q {EXAMPLES}")
        for cell in cells_of(name):
            lab.ok(cell)
    finally:
        lab.close()


def allocation(hosts: Hosts) -> list[str]:
    """Allocate both nodes for as long as the hosts last; return a command that runs in it."""
    told = hosts.base / "allocation"
    script = f"env > {told}.new && mv {told}.new {told} && exec sleep infinity"
    words = ("salloc", "--nodes=2", "--quiet", "sh", "-c", script)
    hosts.daemon("salloc", *hosts.command(1, *words))
    wait_for(told.exists, "the allocation")
    return ["env", *(line for line in told.read_text().splitlines() if line.startswith("SLURM_"))]


def test_two_notebooks_and_a_server_that_is_killed(hosts: Hosts) -> None:
    spec = hosts.base / "home" / "data" / "kernels" / "hardy"
    spec.mkdir(parents=True)
    (spec / "kernel.json").write_text(json.dumps(HARDY))
    within = allocation(hosts)
    first = HostServer(hosts, *within)
    one, other = first.notebook("hardy"), first.notebook("hardy")
    for notebook in (one, other):
        notebook.ok("%load_ext jupyter_dist_server")
    one.ok("%dist_init --nodes 2 -n 4")
    assert "[0-3] sum 4.0" in one.ok(SUM + "\nkept = rank").lines

    # The second notebook uses the same ranks, on both nodes.
    other.ok("%dist_attach")
    code = "%%distributed --per-rank\nimport socket\nprint(socket.gethostname(), kept)"
    assert {"n1 0", "n1 1", "n2 2", "n2 3"} <= set(other.ok(code).lines)
    (pool,) = pools(first)
    replace_rank_that_is_busy(hosts, other, lambda: one.ok("%dist_restart --ranks 3"))
    assert "[0-3] sum 4.0" in other.ok(SUM).lines
    (before,) = pools(first)
    assert before["id"] == pool["id"]

    # Neither the ranks of this node nor those of the other one end with the server.
    first.kill()
    assert "[0-3] sum 4.0" in one.ok(SUM).lines
    second = HostServer(hosts, *within)
    try:
        pool = adopted(second)
        assert pool["id"] == before["id"]
        assert [rank["pid"] for rank in pool["ranks"]] == [r["pid"] for r in before["ranks"]]
        for notebook in (one, other):
            assert "[0-3] sum 4.0" in notebook.ok(SUM).lines
        go_on_without_second_node(hosts, second, pool["id"])
        for notebook in (one, other):
            assert "[0-1] sum 2.0" in notebook.ok(SUM).lines
        second.api("DELETE", f"pools/{pool['id']}?wait=1")
        assert one.refused("%%distributed\n1") == "no_pool"
        wait_for(lambda: not hosts.folders(1) and not hosts.folders(2), "the end of the pool")
    finally:
        for notebook in (one, other):
            notebook.close()
        second.close()


def replace_rank_that_is_busy(
    hosts: Hosts, notebook: Notebook, replace: Callable[[], object]
) -> None:
    """Replace the last rank while a cell of a notebook runs there: it ends, and says why."""
    begun = hosts.base / "begun"
    cell = notebook.send(f"%%rank [3]\nopen('{begun}', 'w').close()\nwhile True: pass")
    wait_for(begun.exists, "the cell's begin")
    replace()
    said = notebook.follow(cell)
    assert said.status == "error"
    assert "Rank 3" in said.error and "restarted" in said.error
    begun.unlink()


def go_on_without_second_node(hosts: Hosts, server: HostServer, pool: str) -> None:
    """Cut that node off, and have the pool's ranks on the other one replaced by REST."""
    route = f"pools/{pool}"
    hosts.cut(2)
    try:
        wait_for(lambda: server.api("GET", route)["lost_nodes"] == ["n2"], "a word of the node")
        server.api("POST", f"{route}/restart", {"without_lost_nodes": True})
        wait_for(lambda: server.api("GET", route)["state"] == "RUNNING", "the new ranks")
        said = server.api("GET", route)
        assert (said["world_size"], said["lost_nodes"]) == (2, [])
        assert [(rank["rank"], rank["node"]) for rank in said["ranks"]] == [(0, ""), (1, "")]
        wait_for(lambda: not hosts.folders(2), "the end of the agent on the lost node")
    finally:
        hosts.mend(2)


def pools(server: HostServer) -> list[dict[str, Any]]:
    """Return the living pools."""
    return [pool for pool in server.api("GET", "pools")["pools"] if pool["ended"] is None]


def adopted(server: HostServer) -> dict[str, Any]:
    """Return the pool that an earlier server left, as soon as this one has it."""
    found: list[dict[str, Any]] = []

    def is_there() -> bool:
        found[:] = [pool for pool in pools(server) if pool["state"] == "RUNNING"]
        return bool(found)

    wait_for(is_there, "the pool")
    (pool,) = found
    return pool
