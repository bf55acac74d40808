"""``make demo-cluster``: the quickstart on two hosts with two ranks each, under Slurm and Ray.

The hosts are network namespaces of this machine. An engine that is not installed is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import nbformat

from tests.cluster import ray_hosts, slurm_hosts
from tests.cluster.hosts import Hosts
from tests.cluster.lab import Lab
from tools.demo import EXAMPLES

SALLOC = ("salloc", "--nodes=2", "--quiet")
ENGINES = (
    ("slurm", slurm_hosts.why_not, slurm_hosts.start_slurm, SALLOC),
    ("ray", ray_hosts.why_not, ray_hosts.RayCluster, ()),
)


def cells(engine: str) -> list[str]:
    """Return the quickstart's cells for an engine, without what holds for two ranks only."""
    found = []
    for cell in nbformat.read(EXAMPLES / "quickstart.ipynb", as_version=4).cells:  # type: ignore[no-untyped-call]
        lines = [line for line in cell.source.splitlines() if not line.startswith("assert")]
        source = "\n".join(lines).strip().replace("%%distributed\n\n", "%%distributed\n")
        source = source.replace("%dist_init -n 2", f"%dist_init --engine {engine} --nodes 2 -n 4")
        if cell.cell_type == "code" and source not in ("", "%%distributed"):
            found.append(source)
    return found


def show(engine: str, start: Callable[[Hosts], object], within: tuple[str, ...]) -> None:
    """Run the quickstart under an engine."""
    print(f"Two hosts with {engine.capitalize()}: starting them.", flush=True)
    hosts = Hosts()
    try:
        start(hosts)
        lab = Lab(hosts, *within)
        try:
            for source in cells(engine):
                print("\n>>> " + source.replace("\n", "\n... "), flush=True)
                print(lab.ok(source), end="", flush=True)
        finally:
            lab.close()
    finally:
        hosts.close()


def main() -> int:
    """Run it under each engine that can be had; tell whether any could."""
    shown = 0
    for engine, why_not, start, within in ENGINES:
        if why := why_not():
            print(f"{engine.capitalize()} is left out: {why}.")
        else:
            show(engine, start, within)
            shown += 1
    return 0 if shown else 1


if __name__ == "__main__":
    sys.exit(main())
