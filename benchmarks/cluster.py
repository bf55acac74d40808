"""Measure ranks on one node and on two, beside actors of Ray and Monarch, and ipyparallel.

The nodes are network namespaces of this machine, joined by a bridge: they share its cores. Needs
root, Slurm, and what is installed of the others.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version

from tests.cluster import ray_hosts, slurm_hosts
from tests.cluster.hosts import Hosts
from tests.cluster.lab import Lab
from tests.waiting import wait_for

from . import actors
from .report import figure, machine, table

GROUP = (
    "import os, torch, torch.distributed as dist\nos.environ['GLOO_SOCKET_IFNAME'] = 'eth0'\n"
    "dist.init_process_group('gloo', init_method='tcp://{master}:29511', rank=rank, "
    "world_size={size})"
)
REDUCE = "t = torch.ones(1)\ndist.all_reduce(t)"


@dataclass(frozen=True)
class Sizes:
    ranks: int
    trials: int
    lines: int
    mebibytes: int


@dataclass(frozen=True)
class System:
    """What is measured; commands that it needs around the notebook are in `within`."""

    name: str
    why_not: Callable[[], str]
    cluster: Callable[[Hosts], object]
    start: Callable[[Hosts, Sizes, int], Iterator[str]]
    """Returns the cells that bring up ranks on some nodes, with a process group."""
    wrap: Callable[[str], str]
    """Returns the cell that runs code on all ranks."""
    pull: str
    """Fetches `big` of the last rank as `got`."""
    push: str
    """Sets `big` on all ranks to `got`."""
    prints: bool = True
    """Whether what ranks print comes with the cell."""
    within: tuple[str, ...] = ()


# -- the systems ------------------------------------------------------------------------------


def _start_ours(hosts: Hosts, sizes: Sizes, nodes: int) -> Iterator[str]:
    yield "%load_ext jupyter_dist_server"
    where = "--engine slurm --nodes 2" if nodes == 2 else "--engine local"
    yield f"%dist_init {where} -n {sizes.ranks}"


def _start_ray(hosts: Hosts, sizes: Sizes, nodes: int) -> Iterator[str]:
    master = hosts.address(1)
    yield f"""{actors.RAY}
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
ray.init(address='auto', logging_level='error')
nodes = sorted(ray.nodes(), key=lambda node: node['NodeManagerAddress'] != {master!r})

def place(rank):
    node = nodes[rank * {nodes} // {sizes.ranks}]
    on = On(node['NodeID'], soft=False)
    return Rank.options(num_cpus=0, scheduling_strategy=on).remote(rank)

pool = [place(rank) for rank in range({sizes.ranks})]
whose = -1
"""
    yield f"run({GROUP.format(master=master, size=sizes.ranks)!r})"


def _start_monarch(hosts: Hosts, sizes: Sizes, nodes: int) -> Iterator[str]:
    places = [f"tcp://{hosts.address(number)}:29512" for number in hosts.numbers[:nodes]]
    trust = "ca='trust_all_connections'"  # it has no other way yet
    for number, place in enumerate(places, 1):
        program = (
            "from monarch.actor import run_worker_loop_forever\n"
            f"run_worker_loop_forever(address={place!r}, {trust})"
        )
        worker = hosts.command(number, sys.executable, "-c", program)
        hosts.daemon(f"monarch-{nodes}-{number}", *worker)
    each = sizes.ranks // nodes
    yield f"""{actors.MONARCH}
from monarch.actor import attach_to_workers, enable_transport
enable_transport('tcp://{hosts.address(1)}:0')
hosts = attach_to_workers(workers={places}, {trust})
procs = hosts.spawn_procs(per_host={{'gpus': {each}}})
pool = procs.spawn('rank', Rank)
whose = {{'hosts': {nodes - 1}, 'gpus': {each - 1}}}
{actors.MONARCH_WARM}
"""
    yield f"run({GROUP.format(master=hosts.address(1), size=sizes.ranks)!r})"


def _start_engines(hosts: Hosts, sizes: Sizes, nodes: int) -> Iterator[str]:
    folder = hosts.base / "home" / f"ipp-{nodes}"
    place = f"--profile-dir={folder}"
    controller = (sys.executable, "-m", "ipyparallel.controller", place)
    address = f"--ip={hosts.address(1)}"
    hosts.daemon(f"controller-{nodes}", *hosts.command(1, *controller, address))
    connection = folder / "security" / "ipcontroller-engine.json"
    wait_for(connection.exists, "the start of ipyparallel's controller")
    for rank in range(sizes.ranks):
        host = 1 + rank * nodes // sizes.ranks
        engine = (sys.executable, "-m", "ipyparallel.engine", f"--file={connection}")
        hosts.daemon(f"engine-{nodes}-{rank}", *hosts.command(host, *engine))
    yield f"""
import ipyparallel, socket
rc = ipyparallel.Client('{connection.parent}/ipcontroller-client.json')
rc.wait_for_engines({sizes.ranks}, timeout=120)
names = dict(zip(rc.ids, rc[:].apply_sync(socket.gethostname)))
order = sorted(rc.ids, key=names.get)
view = rc[order]
view.scatter('rank', range(len(order)), flatten=True, block=True)
view.block = True
view.activate('')
"""
    yield "%%px\n" + GROUP.format(master=hosts.address(1), size=sizes.ranks)


def _why_not(module: str, package: str) -> Callable[[], str]:
    missing = importlib.util.find_spec(module) is None
    return lambda: f"needs {package}: pip install {package}" if missing else ""


SYSTEMS = (
    System(
        "ours",
        slurm_hosts.why_not,
        slurm_hosts.start_slurm,
        _start_ours,
        lambda code: "%%distributed\n" + code,
        "%dist_pull big --rank -1 --as got",
        "%dist_push got --as big",
        within=("salloc", "--nodes=2", "--quiet"),
    ),
    System(
        "ray",
        ray_hosts.why_not,
        lambda hosts: ray_hosts.RayCluster(hosts, store=1 << 30),
        _start_ray,
        lambda code: f"run({code!r})",
        actors.RAY_PULL,
        actors.RAY_PUSH,
        prints=False,
    ),
    System(
        "monarch",
        _why_not("monarch", "torchmonarch"),
        lambda hosts: None,
        _start_monarch,
        lambda code: f"run({code!r})",
        actors.MONARCH_PULL,
        actors.MONARCH_PUSH,
        prints=False,
    ),
    System(
        "ipyparallel",
        _why_not("ipyparallel", "ipyparallel"),
        lambda hosts: None,
        _start_engines,
        lambda code: "%%px\n" + code,
        "got = rc[order[-1]]['big']",
        "view.push({'big': got}, block=True)",
    ),
)

# -- what is measured -------------------------------------------------------------------------

ROWS = {
    "cold_s": "start to first cell done on all ranks, s",
    "pass_ms": "`pass`, ms",
    "reduce_ms": "`dist.all_reduce` of one element, ms",
    "lines_s": "lines printed per second",
    "pull_mib_s": "array from the last rank to the notebook, MiB/s",
    "push_mib_s": "array to all ranks, MiB/s in total",
}


@contextmanager
def _opened(system: System) -> Iterator[tuple[Hosts, Lab]]:
    with ExitStack() as undo:
        hosts = Hosts()
        undo.callback(hosts.close)
        cluster = system.cluster(hosts)
        if isinstance(cluster, ray_hosts.RayCluster):
            undo.callback(cluster.close)
        lab = Lab(hosts, *system.within)
        undo.callback(lab.close)
        yield hosts, lab


def _seconds(lab: Lab, cell: str) -> float:
    begun = time.perf_counter()
    lab.ok(cell)
    return time.perf_counter() - begun


def measure(system: System, sizes: Sizes, nodes: int) -> dict[str, float]:
    with _opened(system) as (hosts, lab):

        def median_ms(code: str) -> float:
            cell = system.wrap(code)
            lab.ok(cell)
            return 1e3 * statistics.median(_seconds(lab, cell) for _ in range(sizes.trials))

        begun = time.perf_counter()
        for cell in system.start(hosts, sizes, nodes):
            lab.ok(cell)
        lab.ok(system.wrap(REDUCE))
        values = {"cold_s": time.perf_counter() - begun}
        values |= {"pass_ms": median_ms("pass"), "reduce_ms": median_ms("dist.all_reduce(t)")}
        if system.prints:
            code = f"for i in range({sizes.lines}):\n    print(f'<{{rank}}:{{i}}>')"
            seconds = _seconds(lab, system.wrap(code))
            values["lines_s"] = sizes.ranks * sizes.lines / seconds
        length = sizes.mebibytes << 18
        lab.ok(system.wrap(f"import numpy\nbig = numpy.ones({length}, dtype='float32') + rank"))
        values["pull_mib_s"] = sizes.mebibytes / _seconds(lab, system.pull)
        lab.ok(f"assert got.sum() == {length * sizes.ranks}, got")
        values["push_mib_s"] = sizes.mebibytes * sizes.ranks / _seconds(lab, system.push)
        lab.ok(system.wrap(f"assert big.sum() == {length * sizes.ranks}, big"))
        return values


def main() -> int:
    """Measure what is there, and print a table; return an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--num-ranks", type=int, default=4, help="of them half on each node")
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--lines", type=int, default=20_000, help="printed by each rank")
    parser.add_argument("--mebibytes", type=int, default=100)
    parser.add_argument("--only", nargs="+", choices=[system.name for system in SYSTEMS])
    options = parser.parse_args()
    sizes = Sizes(options.num_ranks, options.trials, options.lines, options.mebibytes)
    measured = {}
    for system in SYSTEMS:
        if options.only and system.name not in options.only:
            continue
        if why := system.why_not():
            print(f"{system.name} is left out: {why}.", file=sys.stderr)
            continue
        for nodes in (1, 2):
            name = f"{system.name}, {nodes} node{'s' * (nodes > 1)}"
            print(name, file=sys.stderr)
            measured[name] = measure(system, sizes, nodes)
    if measured:
        print(f"{sizes.ranks} ranks, {sizes.mebibytes} MiB;", machine(version("torch")) + "\n")
        rows = [
            [words, *(figure(v.get(row)) for v in measured.values())] for row, words in ROWS.items()
        ]
        print(table(["", *measured], rows))
    return 0 if measured else 1


if __name__ == "__main__":
    sys.exit(main())
