"""``make demo``: the quickstart notebook on two ranks, through a real Jupyter server."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat

from jupyter_dist_server.common.processes.process_ref import ProcessRef
from tests.notebook_driver import Notebook
from tests.result import Result
from tests.server_driver import Server

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
INSTALLS = "install"
"""The tag of cells that install our package, which a checkout has installed already."""
CELL_TIMEOUT = 150.0
"""Seconds; the first import of torch on a slow disk takes most of a minute."""

Pools = dict[str, dict[str, Any]]
OnCell = Callable[[str, Result], None]


class DemoFailed(Exception):
    """Something that the demo claims is not so."""


def play(path: Path, server: Server, notebook: Notebook, on_cell: OnCell) -> Pools:
    """Run the cells of a notebook in a kernel of a server, one after the other.

    Parameters
    ----------
    path : Path
        The notebook's file.
    server : Server
        The kernel's server.
    notebook : Notebook
        The kernel.
    on_cell : callable
        Called after each cell with its source and what it showed.

    Returns
    -------
    dict
        The pools that the server had for this kernel, by id, as REST showed them in between.

    Raises
    ------
    DemoFailed
        If a cell fails.
    """
    pools: Pools = {}
    for cell in nbformat.read(path, as_version=4).cells:  # type: ignore[no-untyped-call]
        if cell.cell_type != "code" or INSTALLS in cell.metadata.get("tags", ()):
            continue
        result = notebook.run(cell.source, timeout=CELL_TIMEOUT)
        on_cell(cell.source, result)
        if result.status != "ok":
            raise DemoFailed(f"This cell of {path.name} failed:\n{cell.source}\n{result.error}")
        for pool in server.pools():
            if pool["kernel_id"] == notebook.kernel_id:
                pools[pool["id"]] = pool
    return pools


def processes(pools: Pools) -> list[ProcessRef]:
    """Return the ranks of pools."""
    ranks = [rank for pool in pools.values() for rank in pool["ranks"]]
    return [ProcessRef(rank["pid"], rank["start_ticks"]) for rank in ranks]


def check(pools: Pools, ranks: int) -> None:
    """Raise `DemoFailed` unless the server had one pool of this size, and nothing of it is left."""
    sizes = [pool["world_size"] for pool in pools.values()]
    if sizes != [ranks]:
        raise DemoFailed(f"The server should have had one pool of {ranks} ranks, not {sizes}.")
    if left := [rank.pid for rank in processes(pools) if rank.find()]:
        raise DemoFailed(f"These rank processes are still there: {left}.")


def _show(source: str, result: Result) -> None:
    print(f"\n> {source.splitlines()[0]}")
    for line in result.shown.rstrip().splitlines():
        print(f"  {line}")


def main() -> int:
    """Run the demo and return its exit status."""
    with tempfile.TemporaryDirectory(prefix="jupyter-dist-demo-") as home:
        print("Starting a Jupyter server...")
        server = Server(Path(home), EXAMPLES)
        try:
            print(f"examples/quickstart.ipynb, in a kernel of {server.url}")
            notebook = server.notebook()
            try:
                pools = play(EXAMPLES / "quickstart.ipynb", server, notebook, _show)
            finally:
                notebook.close()
            check(pools, ranks=2)
        except DemoFailed as error:
            print(f"\nThe demo failed. {error}", file=sys.stderr)
            return 1
        finally:
            server.close()
    pids = " and ".join(str(rank.pid) for rank in processes(pools))
    print(f"\nEvery cell did what it says. The server had started processes {pids}; both are gone.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
